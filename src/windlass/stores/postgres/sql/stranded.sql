with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select count(*)
from (
    select 1
    from windlass_job
    where state = 'running'
        and lease_expires_at <= (select now from moment)
        and lease_expires_at >= coalesce(:lease_mark::timestamptz, '-infinity')
        and not exists (select from windlass_server where seen_at > (select now from moment) - :age::interval)
    limit 1000
) as expired
