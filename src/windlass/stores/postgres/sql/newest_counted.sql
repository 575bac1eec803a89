-- The newest that match among all jobs of some queues and states, which are few: each is found by the index of its state.
-- A line with an end, here one that is past all there are, is read in the order of its index, whatever the planner thinks.
with line as materialized (
    select wanted.queue, wanted.state from unnest($2::text[], $3::text[]) as wanted (queue, state)
),
looked as (
    select ready.*
    from line
    cross join lateral (
        select * from windlass_job as job where job.state = 'pending' and job.queue = line.queue
        order by job.queue, job.priority, job.run_at, job.seq
        limit $5::integer
    ) as ready
    where line.state = 'pending'
    union all
    select due.*
    from line
    cross join lateral (
        select * from windlass_job as job where job.state = 'scheduled' and job.queue = line.queue
        order by job.queue, job.run_at, job.seq
        limit $5::integer
    ) as due
    where line.state = 'scheduled'
    union all
    select leased.*
    from (select from line where state = 'running' limit 1) as any_running
    cross join lateral (
        select * from windlass_job as job where job.state = 'running'
        order by job.lease_expires_at, job.seq
        limit 2147483647
    ) as leased
    where leased.queue in (select line.queue from line where line.state = 'running')
    union all
    select ended.*
    from line
    cross join lateral (
        select * from windlass_job as job
        where job.finished_at is not null and job.queue = line.queue and job.state = line.state
        order by job.queue, job.state, job.finished_at, job.seq
        limit $5::integer
    ) as ended
    where line.state in ('succeeded', 'dead', 'cancelled')
)
select {job_columns}
from looked
where seq < $1::bigint
    and ($6::text is null or kind = $6::text)
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
limit $4::integer
