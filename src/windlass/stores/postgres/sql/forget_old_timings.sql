with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
delete from windlass_timing
where minute < (select now from moment) - $2::interval
