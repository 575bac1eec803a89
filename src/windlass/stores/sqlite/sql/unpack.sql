-- the values stand in the order of the columns
insert into windlass_job (
    seq, id, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery, created_at,
    run_at, last_error, progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, hold, hold_until,
    log_lines
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
