-- jobs, and all that is kept with them
with deliveries as (
    delete from windlass_delivery where seq = any(:seqs::bigint[])
),
lines as (
    delete from windlass_log where seq = any(:seqs::bigint[])
)
delete from windlass_job where seq = any(:seqs::bigint[])
