-- What waits, by queue and kind. Jobs with a kind are counted by their index, all of it and no row; raw ones, which have
-- no index of their own, are those of a queue that are left over, and the oldest of them is found as in stats.sql.
with of_kinds as materialized (
    select queue, kind, count(*) as pending, min(run_at) as oldest
    from windlass_job
    where state = 'pending' and kind is not null
    group by queue, kind
),
counted as (
    select queue, pending from windlass_count where minute = 'infinity'
    union all
    select queue, pending from windlass_delta
    union all
    select queue, -pending from of_kinds
),
raw as materialized (
    select queue, least(greatest(sum(pending), -9007199254740992), 9007199254740992)::bigint as pending
    from counted
    group by queue
    having sum(pending) <> 0
)
select queue, kind, pending, oldest from of_kinds
union all
select raw.queue, '', raw.pending, oldest.run_at
from raw
left join (
    select
        queue,
        marks,
        case
            -- damaged marks, which are no pairs, must not hide a job: without priorities they are not used
            when array_ndims(priorities) = 1 and array_ndims(marks) = 1 and cardinality(priorities) = cardinality(marks)
            then case when array_position(priorities, null) is null and array_position(marks, null) is null then priorities end
        end as priorities
    from windlass_queue
) as known on known.queue = raw.queue
left join lateral (
    with recursive priorities (priority) as (
        select (-2147483648)::integer
        union all
        select least(
            marked.priority,
            (
                select job.priority
                from windlass_job as job
                where job.state = 'pending' and job.queue = raw.queue and job.priority > priorities.priority
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
        where job.state = 'pending' and job.queue = raw.queue and job.priority = priorities.priority
            and job.run_at >= coalesce(known.marks[array_position(known.priorities, priorities.priority)], '-infinity')
            and job.kind is null
        order by job.run_at
        limit 1
    ) as head
) as oldest on true
