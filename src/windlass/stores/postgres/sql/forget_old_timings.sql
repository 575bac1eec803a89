with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
delete from windlass_timing
where minute < (select now from moment) - :age::interval
