-- the earliest of each queue first, and not all at once: a flood of due jobs must not hold others up
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
due as materialized (
    select job.seq
    from moment
    cross join unnest($2::text[]) as wanted (queue)
    left join windlass_queue as known on known.queue = wanted.queue
    cross join lateral (
        select job.seq
        from windlass_job as job
        where job.state = 'scheduled' and job.queue = wanted.queue and job.run_at <= moment.now
            and job.run_at >= coalesce(known.due_mark, '-infinity')
        order by job.run_at, job.seq
        limit $3::integer
        for no key update skip locked
    ) as job
    limit $3::integer
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
