-- the minute that never ends is later than any
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
delete from windlass_count
where minute < (select now from moment) - :age::interval
