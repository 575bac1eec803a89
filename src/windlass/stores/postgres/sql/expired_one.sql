-- one claim to take back, if it is still one of those that expired.sql finds: only a job that runs has a lease
with moment as materialized (
    select case when $2::boolean then 'infinity' else coalesce($1::timestamptz, clock_timestamp()) end as now
)
select
    seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority,
    -- a damaged time is given as one that every driver can read
    least(greatest(run_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00'),
    case
        when claimed_at is null then null
        else least(greatest(claimed_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00')
    end,
    worker, token::text, unique_key, hold, hold_until, log_lines
from windlass_job
where seq = $3::bigint and (
    lease_expires_at <= (select now from moment)
    or lease_expires_at > '9999-12-31 23:59:59.999999+00'
    or state = 'running' and lease_expires_at is null
)
for update skip locked
