-- to a time that is past, or to none, means now
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
update windlass_job
set state = case when $2::timestamptz > (select now from moment) then 'scheduled' else 'pending' end,
    -- the driver takes the last moment there is for the end of time
    run_at = least(greatest($2::timestamptz, (select now from moment)), '9999-12-31 23:59:59.999999+00')
where seq = any($3::bigint[])
returning id::text, state
