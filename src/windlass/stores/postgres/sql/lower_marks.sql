-- marks that lie above the places of jobs that come back to them; see docs/decisions/0013-marks.md
with back as materialized (
    select
        job.queue,
        job.priority,
        -- so early a time may stand for a damaged one, which is before all others
        min(case when job.run_at <= '0001-01-02 00:00:00+00' then '-infinity' else job.run_at end) as run_at
    from unnest(:queues::text[], :priorities::integer[], :run_ats::timestamptz[]) as job (queue, priority, run_at)
    group by job.queue, job.priority
),
lower as materialized (
    select
        known.queue,
        array(
            select case when part.mark is not null then least(part.mark, back.run_at) end
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
            -- damaged ones are not used, and must not become pairs that nobody has raised
            and cardinality(marked.priorities) = cardinality(marked.marks)
    )
)
update windlass_queue as known
set marks = lower.marks
from lower
where known.queue = lower.queue
