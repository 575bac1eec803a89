-- the time of the look is told also where there is no schedule
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select
    moment.now,
    schedule.id, schedule.rule, schedule.timezone, schedule.queue, schedule.kind, schedule.codec, schedule.headers,
    schedule.tenant, schedule.priority, schedule.max_attempts, schedule.catch_up, schedule.overlap, schedule.declared,
    schedule.paused, schedule.next_run_at, schedule.last_run_at, schedule.last_job_id::text, schedule.revision,
    schedule.payload
from moment
left join windlass_schedule as schedule on true
