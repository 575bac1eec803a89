-- the values stand in the order of the columns; as `enqueue_bare.sql`, and more
insert into windlass_job (
    seq, id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at,
    headers, tenant, unique_key, parent_id, schedule_id, limit_key, hold, hold_until
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing
