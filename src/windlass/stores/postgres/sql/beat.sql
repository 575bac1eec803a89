-- started_at is when the server first said that it is live, by the same clock as seen_at
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
insert into windlass_server (id, started_at, seen_at, record)
select :server_id::text, moment.now, moment.now, :record::text
from moment
on conflict (id) do update set seen_at = excluded.seen_at, record = excluded.record
