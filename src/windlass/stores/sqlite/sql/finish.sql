update windlass_job
set state = :state,
    finished_at = :now,
    lease_expires_at = null,
    last_error = coalesce(:last_error, last_error),
    result = :result,
    result_codec = :result_codec,
    -- a key that the claim freed is not taken again by a retry
    hold = case when hold_until = 'claimed' then null else hold end,
    token = :token
where seq = :seq
