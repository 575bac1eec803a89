update windlass_job
set state = $3::text,
    finished_at = coalesce($1::timestamptz, clock_timestamp()),
    lease_expires_at = null,
    last_error = coalesce($4::text, last_error),
    result = $5::bytea,
    result_codec = $6::text,
    -- a key that the claim freed is not taken again by a retry
    hold = case when hold_until = 'claimed' then null else hold end,
    token = $7::uuid
where seq = $2::bigint
