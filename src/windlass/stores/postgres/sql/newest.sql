-- the newest that match among the last $2 before a number; what is looked at does not grow with what is there
select {job_columns}
from (
    select * from windlass_job where seq < $1::bigint order by seq desc limit $2::integer
) as looked
where ($4::text is null or queue = $4::text)
    and ($5::text is null or kind = $5::text)
    and ($6::text is null or state = $6::text)
    and ($7::text is null or tenant = $7::text)
    and ($8::text is null or schedule_id = $8::text)
    and ($9::text is null or position($9::text in last_error) > 0)
    and ($10::timestamptz is null or created_at >= $10::timestamptz)
    and ($11::timestamptz is null or created_at < $11::timestamptz)
    and (
        $12::text is null
        or position($12::text in id::text) > 0
        or position($12::text in kind) > 0
        or position($12::text in unique_key) > 0
        or position($12::text in tenant) > 0
        or position($12::text in last_error) > 0
    )
    and ($13::uuid is null or parent_id = $13::uuid)
    and ($14::text is null or unique_key = $14::text)
    and ($15::text is null or last_error = $15::text or starts_with(last_error, $15::text || ':'))
    and ($16::bytea is null or position($16::bytea in payload) > 0)
order by seq desc
limit $3::integer
