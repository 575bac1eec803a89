-- the values stand in the order of the columns
insert or replace into windlass_schedule (
    id, rule, timezone, queue, kind, codec, headers, tenant, priority, max_attempts, catch_up, overlap, declared,
    paused, next_run_at, last_run_at, last_job_id, revision, payload
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
