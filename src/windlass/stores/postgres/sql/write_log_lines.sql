with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
insert into windlass_log (seq, line, at, level, text, delivery)
select noted.seq, noted.line, moment.now, noted.level, noted.text, noted.delivery
from moment
cross join unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::integer[])
    as noted (seq, line, level, text, delivery)
-- only where the number of the last line was lost
on conflict (seq, line) do nothing
