-- What queues hold and have done: what was added up, and what changed since. The oldest waiting job is found by
-- stepping from priority to priority instead of reading every pending job; before a mark of its priority no job can
-- wait.
with counted as (
    select
        queue, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
        cancelled_total, retried_total, rescued_total
    from windlass_count
    where minute = 'infinity' and ($1::text is null or queue = $1::text)
    union all
    select
        queue, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
        cancelled_total, retried_total, rescued_total
    from windlass_delta
    where $1::text is null or queue = $1::text
    union all
    select queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    from windlass_queue
    where $1::text is null or queue = $1::text
),
summed as materialized (
    select
        queue, sum(scheduled)::bigint as scheduled, sum(pending)::bigint as pending, sum(running)::bigint as running,
        sum(succeeded)::bigint as succeeded, sum(dead)::bigint as dead, sum(cancelled)::bigint as cancelled,
        sum(enqueued_total)::bigint as enqueued_total, sum(succeeded_total)::bigint as succeeded_total,
        sum(dead_total)::bigint as dead_total, sum(cancelled_total)::bigint as cancelled_total,
        sum(retried_total)::bigint as retried_total, sum(rescued_total)::bigint as rescued_total
    from counted
    group by queue
)
select
    summed.queue, coalesce(known.paused, false), summed.scheduled, summed.pending, summed.running, summed.succeeded,
    summed.dead, summed.cancelled, summed.enqueued_total, summed.succeeded_total, summed.dead_total,
    summed.cancelled_total, summed.retried_total, summed.rescued_total, oldest.run_at
from summed
left join windlass_queue as known on known.queue = summed.queue
left join lateral (
    with recursive priorities (priority) as (
        select -1 where summed.pending > 0
        union all
        select least(
            marked.priority,
            (
                select job.priority
                from windlass_job as job
                where job.state = 'pending' and job.queue = summed.queue and job.priority > priorities.priority
                    and job.priority < coalesce(marked.priority, 2147483648)
                order by job.priority
                limit 1
            )
        )
        from priorities
        cross join lateral (
            select min(mark.priority) as priority
            from unnest(known.priorities) as mark (priority)
            where mark.priority > priorities.priority
        ) as marked
        where priorities.priority is not null
    )
    select min(head.run_at) as run_at
    from priorities
    cross join lateral (
        select job.run_at
        from windlass_job as job
        where job.state = 'pending' and job.queue = summed.queue and job.priority = priorities.priority
            and job.run_at >= coalesce(known.marks[array_position(known.priorities, priorities.priority)], '-infinity')
        order by job.run_at
        limit 1
    ) as head
) as oldest on true
