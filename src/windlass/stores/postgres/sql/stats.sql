-- What queues hold and have done: what was added up, and what changed since. The oldest waiting job is found by
-- stepping from priority to priority instead of reading every pending job; before a mark of its priority no job can
-- wait. A sum that a damaged count has made too large is given as the largest that is exact in JSON.
with counted as (
    select
        queue, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
        cancelled_total, retried_total, rescued_total
    from windlass_count
    where minute = 'infinity' and (:queue::text is null or queue = :queue::text)
    union all
    select
        queue, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
        cancelled_total, retried_total, rescued_total
    from windlass_delta
    where :queue::text is null or queue = :queue::text
    union all
    select queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    from windlass_queue
    where :queue::text is null or queue = :queue::text
),
summed as materialized (
    select
        queue,
        least(greatest(sum(scheduled), -9007199254740992), 9007199254740992)::bigint as scheduled,
        least(greatest(sum(pending), -9007199254740992), 9007199254740992)::bigint as pending,
        least(greatest(sum(running), -9007199254740992), 9007199254740992)::bigint as running,
        least(greatest(sum(succeeded), -9007199254740992), 9007199254740992)::bigint as succeeded,
        least(greatest(sum(dead), -9007199254740992), 9007199254740992)::bigint as dead,
        least(greatest(sum(cancelled), -9007199254740992), 9007199254740992)::bigint as cancelled,
        least(greatest(sum(enqueued_total), -9007199254740992), 9007199254740992)::bigint as enqueued_total,
        least(greatest(sum(succeeded_total), -9007199254740992), 9007199254740992)::bigint as succeeded_total,
        least(greatest(sum(dead_total), -9007199254740992), 9007199254740992)::bigint as dead_total,
        least(greatest(sum(cancelled_total), -9007199254740992), 9007199254740992)::bigint as cancelled_total,
        least(greatest(sum(retried_total), -9007199254740992), 9007199254740992)::bigint as retried_total,
        least(greatest(sum(rescued_total), -9007199254740992), 9007199254740992)::bigint as rescued_total
    from counted
    group by queue
)
select
    summed.queue, coalesce(known.paused, false), summed.scheduled, summed.pending, summed.running, summed.succeeded,
    summed.dead, summed.cancelled, summed.enqueued_total, summed.succeeded_total, summed.dead_total,
    summed.cancelled_total, summed.retried_total, summed.rescued_total, oldest.run_at
from summed
left join (
    select
        queue,
        paused,
        marks,
        case
            -- damaged marks, which are no pairs, must not hide a job: without priorities they are not used
            when array_ndims(priorities) = 1 and array_ndims(marks) = 1 and cardinality(priorities) = cardinality(marks)
            then case when array_position(priorities, null) is null and array_position(marks, null) is null then priorities end
        end as priorities
    from windlass_queue
) as known on known.queue = summed.queue
left join lateral (
    with recursive priorities (priority) as (
        select (-2147483648)::integer where summed.pending > 0
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
