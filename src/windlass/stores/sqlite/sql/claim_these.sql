-- :seqs is a JSON array of sequence numbers
update windlass_job
set state = 'running',
    attempt = attempt + 1,
    delivery = delivery + 1,
    claimed_at = :now,
    lease_expires_at = :lease_expires_at,
    worker = :worker,
    progress = null,
    token = lower(hex(randomblob(16)))
where seq in (select value from json_each(:seqs))
returning
    seq, id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created_at,
    run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, hold
