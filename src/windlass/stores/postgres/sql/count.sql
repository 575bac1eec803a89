-- one row for each queue and kind that changed; the counts are added up later, by fold.sql
insert into windlass_delta (
    minute, queue, kind, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total,
    dead_total, cancelled_total, retried_total, rescued_total
)
select date_trunc('minute', coalesce($1::timestamptz, clock_timestamp())), changed.*
from unnest(
    $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[]
) as changed
