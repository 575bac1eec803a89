-- what a newer call brings to a job that waits
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
planned as materialized (
    select
        moment.now,
        least(
            -- in UTC, where a day has 24 hours
            coalesce(
                (moment.now at time zone 'UTC' + :delay::interval) at time zone 'UTC',
                greatest(:run_at::timestamptz, moment.now)
            ),
            '9999-12-31 23:59:59.999999+00'
        ) as run_at
    from moment
)
update windlass_job
set state = case when planned.run_at > planned.now then 'scheduled' else 'pending' end,
    run_at = planned.run_at,
    payload = :payload::bytea,
    codec = :codec::text
from planned
where seq = :seq::bigint
returning state
