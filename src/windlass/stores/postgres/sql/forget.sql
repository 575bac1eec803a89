-- jobs, and all that is kept with them
with deliveries as (
    delete from windlass_delivery where seq = any($1::bigint[])
),
lines as (
    delete from windlass_log where seq = any($1::bigint[])
)
delete from windlass_job where seq = any($1::bigint[])
