-- The first to be due, of those that no code declares and of those declared ones whose ids are given; of the ones that
-- are due, all there is to know. Declared ones are found by id: they are few, and others' may be many.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
upcoming as materialized (
    (
        select next_run_at, id
        from windlass_schedule
        where not declared and not paused and next_run_at is not null
        order by next_run_at, id
        limit :limit::integer
    )
    union all
    (
        select next_run_at, id
        from windlass_schedule
        where id = any(:declared::text[]) and declared and not paused and next_run_at is not null
        order by next_run_at, id
        limit :limit::integer
    )
)
select
    moment.now, upcoming.next_run_at, upcoming.id,
    schedule.id, schedule.rule, schedule.timezone, schedule.queue, schedule.kind, schedule.codec, schedule.headers,
    schedule.tenant, schedule.priority, schedule.max_attempts, schedule.catch_up, schedule.overlap, schedule.declared,
    schedule.paused, schedule.next_run_at, schedule.last_run_at, schedule.last_job_id::text, schedule.revision,
    schedule.payload
from moment
left join upcoming on true
left join lateral (
    select known.*
    from windlass_schedule as known
    where known.id = upcoming.id and upcoming.next_run_at <= moment.now
    limit 1
) as schedule on true
