-- the token stays: a settlement that is repeated with it had settled this job, also in its former life
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
update windlass_job
set state = 'pending',
    run_at = (select now from moment),
    attempt = 0,
    last_error = null,
    finished_at = null,
    claimed_at = null,
    worker = null,
    result = null,
    result_codec = null,
    cancel_requested = false,
    -- with a delivery 0 there is something beside the job, which is looked for where there are lines
    log_lines = case when delivery = 0 then greatest(log_lines, 1) else log_lines end
where seq = any(:seqs::bigint[])
