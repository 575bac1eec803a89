-- one row for each queue and kind that changed; the counts are added up later, by fold.sql
insert into windlass_delta (
    minute, queue, kind, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total,
    dead_total, cancelled_total, retried_total, rescued_total
)
select date_trunc('minute', coalesce(:now::timestamptz, clock_timestamp())), changed.*
from unnest(
    :queues::text[], :kinds::text[], :scheduled::bigint[], :pending::bigint[], :running::bigint[], :succeeded::bigint[],
    :dead::bigint[], :cancelled::bigint[], :enqueued_total::bigint[], :succeeded_total::bigint[], :dead_total::bigint[],
    :cancelled_total::bigint[], :retried_total::bigint[], :rescued_total::bigint[]
) as changed
