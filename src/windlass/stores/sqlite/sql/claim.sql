-- randomblob in the update itself: every claimed job gets a token of its own
update windlass_job
set state = 'running',
    attempt = attempt + 1,
    delivery = delivery + 1,
    claimed_at = :now,
    lease_expires_at = :lease_expires_at,
    worker = :worker,
    progress = null,
    token = lower(hex(randomblob(16)))
where seq in (
    select seq from windlass_job indexed by windlass_ready
    where state = 'pending' and queue = :queue
    order by priority, run_at, seq
    limit :limit
)
returning
    seq, id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created_at,
    run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, hold
