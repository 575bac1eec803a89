-- The queues that have jobs which are due. Steps from queue to queue by the index instead of reading every scheduled
-- job; a queue with a mark is known by its row, so that nobody steps over what is gone before the mark.
with recursive moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
queues (queue) as (
    select ''
    union all
    select least(
        marked.queue,
        case
            when marked.queue is null then (
                select job.queue from windlass_job as job
                where job.state = 'scheduled' and job.queue > queues.queue
                order by job.queue
                limit 1
            )
            else (
                select job.queue from windlass_job as job
                where job.state = 'scheduled' and job.queue > queues.queue and job.queue < marked.queue
                order by job.queue
                limit 1
            )
        end
    )
    from queues
    cross join lateral (
        select (
            select known.queue from windlass_queue as known
            where known.queue > queues.queue and known.due_mark is not null
            order by known.queue
            limit 1
        ) as queue
    ) as marked
    where queues.queue is not null
)
select queues.queue
from moment
cross join queues
left join windlass_queue as known on known.queue = queues.queue
cross join lateral (
    select from windlass_job as job
    where job.state = 'scheduled' and job.queue = queues.queue and job.run_at <= moment.now
        and job.run_at >= coalesce(known.due_mark, '-infinity')
    limit 1
) as due
where queues.queue <> ''
