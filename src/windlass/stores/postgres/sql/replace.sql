-- what a newer call brings to a job that waits
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
),
planned as materialized (
    select
        moment.now,
        least(
            -- in UTC, where a day has 24 hours
            coalesce((moment.now at time zone 'UTC' + $4::interval) at time zone 'UTC', greatest($3::timestamptz, moment.now)),
            '9999-12-31 23:59:59.999999+00'
        ) as run_at
    from moment
)
update windlass_job
set state = case when planned.run_at > planned.now then 'scheduled' else 'pending' end,
    run_at = planned.run_at,
    payload = $5::bytea,
    codec = $6::text
from planned
where seq = $2::bigint
returning state
