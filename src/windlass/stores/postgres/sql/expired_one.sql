-- one claim to take back, if it is still one of those that expired.sql finds: only a job that runs has a lease
with moment as materialized (
    select case when :force::boolean then 'infinity' else coalesce(:now::timestamptz, clock_timestamp()) end as now
)
select
    {standing_columns}
from windlass_job
where seq = :seq::bigint and (
    lease_expires_at <= (select now from moment)
    or lease_expires_at > '9999-12-31 23:59:59.999999+00'
    or state = 'running' and lease_expires_at is null
)
for update skip locked
