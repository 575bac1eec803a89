-- those of some jobs that match, the newest first
select {job_columns}
from windlass_job
where seq = any($1::bigint[])
    and ($3::text is null or queue = $3::text)
    and ($4::text is null or kind = $4::text)
    and ($5::text is null or state = $5::text)
    and ($6::text is null or tenant = $6::text)
    and ($7::text is null or schedule_id = $7::text)
    and ($8::text is null or position($8::text in last_error) > 0)
    and ($9::timestamptz is null or created_at >= $9::timestamptz)
    and ($10::timestamptz is null or created_at < $10::timestamptz)
    and (
        $11::text is null
        or position($11::text in id::text) > 0
        or position($11::text in kind) > 0
        or position($11::text in unique_key) > 0
        or position($11::text in tenant) > 0
        or position($11::text in last_error) > 0
    )
    and ($12::uuid is null or parent_id = $12::uuid)
    and ($13::text is null or unique_key = $13::text)
    and ($14::text is null or last_error = $14::text or starts_with(last_error, $14::text || ':'))
    and ($15::bytea is null or position($15::bytea in payload) > 0)
order by seq desc
limit $2::integer
