with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
insert into windlass_log (seq, line, at, level, text, delivery)
select noted.seq, noted.line, moment.now, noted.level, noted.text, noted.delivery
from moment
cross join unnest(:seqs::bigint[], :lines::integer[], :levels::text[], :texts::text[], :deliveries::integer[])
    as noted (seq, line, level, text, delivery)
-- only where the number of the last line was lost
on conflict (seq, line) do nothing
