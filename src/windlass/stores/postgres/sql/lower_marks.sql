-- marks that lie above the places of jobs that come back to them; see docs/decisions/0013-marks.md
with back as materialized (
    select job.queue, job.priority, min(job.run_at) as run_at
    from unnest($1::text[], $2::integer[], $3::timestamptz[]) as job (queue, priority, run_at)
    group by job.queue, job.priority
),
lower as materialized (
    select
        known.queue,
        array(
            select least(part.mark, back.run_at)
            from unnest(known.priorities, known.marks) with ordinality as part (priority, mark, place)
            left join back on back.queue = known.queue and back.priority = part.priority
            order by part.place
        ) as marks
    from windlass_queue as known
    where known.queue in (
        select back.queue
        from back
        join windlass_queue as marked on marked.queue = back.queue
        cross join lateral unnest(marked.priorities, marked.marks) as part (priority, mark)
        where part.priority = back.priority and part.mark > back.run_at
    )
)
update windlass_queue as known
set marks = lower.marks
from lower
where known.queue = lower.queue
