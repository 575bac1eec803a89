-- the earliest of each queue first, and not all at once: a flood of due jobs must not hold others up
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
due as materialized (
    select job.seq
    from moment
    cross join unnest(:queues::text[]) as wanted (queue)
    left join windlass_queue as known on known.queue = wanted.queue
    cross join lateral (
        select job.seq
        from windlass_job as job
        where job.state = 'scheduled' and job.queue = wanted.queue and job.run_at <= moment.now
            and job.run_at >= coalesce(known.due_mark, '-infinity')
        order by job.run_at, job.seq
        limit :limit::integer
        for no key update skip locked
    ) as job
    limit :limit::integer
),
promoted as (
    update windlass_job
    set state = 'pending'
    where seq = any(array(select due.seq from due))
    returning queue, priority, run_at
)
select queue, priority, min(run_at), count(*)
from promoted
group by queue, priority
