-- one claim to take back, if it is still one of those that expired.sql finds: only a job that runs has a lease
with moment as materialized (
    select case when $2::boolean then 'infinity' else coalesce($1::timestamptz, clock_timestamp()) end as now
)
select
    seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority, run_at, claimed_at, worker,
    token::text, unique_key, hold, hold_until, log_lines
from windlass_job
where seq = $3::bigint and lease_expires_at <= (select now from moment)
for update skip locked
