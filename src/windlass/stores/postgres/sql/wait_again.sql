-- with no delay given the job keeps its old place
update windlass_job
set state = :state::text,
    run_at = case
        when :delay::interval is null then run_at
        else least(
            -- in UTC, where a day has 24 hours
            (coalesce(:now::timestamptz, clock_timestamp()) at time zone 'UTC' + :delay::interval) at time zone 'UTC',
            '9999-12-31 23:59:59.999999+00'
        )
    end,
    attempt = :attempt::integer,
    last_error = coalesce(:last_error::text, last_error),
    claimed_at = null,
    lease_expires_at = null,
    worker = null,
    unique_key = :unique_key::text,
    hold = :hold::text,
    hold_until = :hold_until::text,
    token = :token::uuid
where seq = :seq::bigint
