-- A job that somebody has locked is left as it is, and its claim is said to hold: one that is in a long transaction must
-- not hold up the leases of all the others.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
free as materialized (
    select seq
    from windlass_job
    {where_claims_hold}
    for no key update skip locked
),
renewed as (
    update windlass_job
    set lease_expires_at = least((select now from moment) + :lease::interval, '9999-12-31 23:59:59.999999+00')
    where seq = any(array(select free.seq from free))
    returning id, token, lease_expires_at, cancel_requested
)
-- all that hold, as they were, and then those that were renewed: whoever reads both keeps the later
select id::text, token::text, lease_expires_at, cancel_requested, false
from windlass_job
{where_claims_hold}
union all
select id::text, token::text, lease_expires_at, cancel_requested, true
from renewed
