-- The newest that match among all jobs of some queues and states, which are few: each is found by the index of its state.
-- A line with an end, here one that is past all there are, is read in the order of its index, whatever the planner thinks.
with line as materialized (
    select wanted.queue, wanted.state from unnest(:queues::text[], :states::text[]) as wanted (queue, state)
),
looked as (
    select ready.*
    from line
    cross join lateral (
        select * from windlass_job as job where job.state = 'pending' and job.queue = line.queue
        order by job.queue, job.priority, job.run_at, job.seq
        limit :most::integer
    ) as ready
    where line.state = 'pending'
    union all
    select due.*
    from line
    cross join lateral (
        select * from windlass_job as job where job.state = 'scheduled' and job.queue = line.queue
        order by job.queue, job.run_at, job.seq
        limit :most::integer
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
        limit :most::integer
    ) as ended
    where line.state in ('succeeded', 'dead', 'cancelled')
)
select {job_columns}
from looked
where seq < :before::bigint
    {job_filter}
order by seq desc
limit :limit::integer
