update windlass_job
set state = :state,
    attempt = :attempt,
    run_at = :run_at,
    last_error = coalesce(:last_error, last_error),
    claimed_at = null,
    lease_expires_at = null,
    worker = null,
    unique_key = :unique_key,
    hold = :hold,
    hold_until = :hold_until,
    token = :token
where seq = :seq
