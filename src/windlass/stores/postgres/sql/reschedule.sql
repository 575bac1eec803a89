-- to a time that is past, or to none, means now
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
update windlass_job
set state = case when :run_at::timestamptz > (select now from moment) then 'scheduled' else 'pending' end,
    -- the driver takes the last moment there is for the end of time
    run_at = least(greatest(:run_at::timestamptz, (select now from moment)), '9999-12-31 23:59:59.999999+00')
where seq = any(:seqs::bigint[])
returning id::text, state
