update windlass_job
set state = :state::text,
    finished_at = coalesce(:now::timestamptz, clock_timestamp()),
    lease_expires_at = null,
    last_error = coalesce(:last_error::text, last_error),
    result = :result::bytea,
    result_codec = :result_codec::text,
    -- a key that the claim freed is not taken again by a retry
    hold = case when hold_until = 'claimed' then null else hold end,
    token = :token::uuid
where seq = :seq::bigint
