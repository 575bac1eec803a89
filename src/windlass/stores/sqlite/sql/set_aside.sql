update windlass_job
set state = 'dead', finished_at = :now, last_error = :last_error, lease_expires_at = null,
    -- a claim that was taken back proves nothing any more
    token = iif(state = 'running', null, token)
where seq = :seq
