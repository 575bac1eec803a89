with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select name, job_id::text, expires_at, digest
from windlass_hold
where expires_at > (select now from moment)
order by expires_at
limit :limit::integer
