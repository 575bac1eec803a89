-- as renew.sql, and waits for whoever has locked a job
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
held as materialized (
    select seq
    from windlass_job
    {where_claims_hold}
    order by id
    for no key update
)
update windlass_job
set lease_expires_at = least((select now from moment) + :lease::interval, '9999-12-31 23:59:59.999999+00')
where seq = any(array(select held.seq from held))
returning id::text, token::text, lease_expires_at, cancel_requested, true
