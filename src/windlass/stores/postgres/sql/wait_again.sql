-- with no delay given the job keeps its old place
update windlass_job
set state = $3::text,
    run_at = case
        when $4::interval is null then run_at
        else least(
            -- in UTC, where a day has 24 hours
            (coalesce($1::timestamptz, clock_timestamp()) at time zone 'UTC' + $4::interval) at time zone 'UTC',
            '9999-12-31 23:59:59.999999+00'
        )
    end,
    attempt = $5::integer,
    last_error = coalesce($6::text, last_error),
    claimed_at = null,
    lease_expires_at = null,
    worker = null,
    unique_key = $7::text,
    hold = $8::text,
    hold_until = $9::text,
    token = $10::uuid
where seq = $2::bigint
