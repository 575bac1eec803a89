-- The jobs of a kind that are pending or running, in some queues and states and in no order. Those that run are counted and
-- few: all of them are looked at. Of the pending ones as many are found as :limit, which tells if they are few.
with line as materialized (
    select wanted.queue, wanted.state from unnest(:queues::text[], :states::text[]) as wanted (queue, state)
)
select found.seq
from (
    select ready.seq
    from line
    cross join lateral (
        select job.seq
        from windlass_job as job
        where job.state = 'pending' and job.queue = line.queue and job.kind = :kind::text and job.kind is not null
        order by job.queue, job.kind, job.priority, job.run_at, job.seq
        limit :limit::integer
    ) as ready
    where line.state = 'pending'
    union all
    select leased.seq
    from (select from line where state = 'running' limit 1) as any_running
    cross join lateral (
        select job.seq, job.queue, job.kind
        from windlass_job as job
        where job.state = 'running'
        order by job.lease_expires_at, job.seq
        limit 2147483647
    ) as leased
    where leased.kind = :kind::text and leased.queue in (select line.queue from line where line.state = 'running')
) as found
limit :limit::integer
