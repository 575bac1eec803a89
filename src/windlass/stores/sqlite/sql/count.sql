insert into windlass_count (minute, queue, kind, {state_columns}, {total_columns})
values (?, ?, ?, {state_values}, {total_values})
on conflict (minute, queue, kind) do update set
    scheduled = scheduled + excluded.scheduled,
    pending = pending + excluded.pending,
    running = running + excluded.running,
    succeeded = succeeded + excluded.succeeded,
    dead = dead + excluded.dead,
    cancelled = cancelled + excluded.cancelled,
    enqueued_total = enqueued_total + excluded.enqueued_total,
    succeeded_total = succeeded_total + excluded.succeeded_total,
    dead_total = dead_total + excluded.dead_total,
    cancelled_total = cancelled_total + excluded.cancelled_total,
    retried_total = retried_total + excluded.retried_total,
    rescued_total = rescued_total + excluded.rescued_total
