-- The running jobs of some claims, to write notes to; found as in renew.sql. A job that somebody has locked is told as one
-- that is not free: the notes of all others, and the settlements that wait for those, are not held up by it.
with free as materialized (
    select
        {standing_columns}
    from windlass_job
    {where_claims_hold}
    order by windlass_job.id
    for no key update skip locked
)
select *, true from free
union all
select
    {standing_columns},
    false
from windlass_job
{where_claims_hold}
