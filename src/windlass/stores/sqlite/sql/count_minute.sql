insert into windlass_minute (minute, queue, kind, enqueued, succeeded, dead, cancelled, retried, rescued)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (minute, queue, kind) do update set
    enqueued = enqueued + excluded.enqueued,
    succeeded = succeeded + excluded.succeeded,
    dead = dead + excluded.dead,
    cancelled = cancelled + excluded.cancelled,
    retried = retried + excluded.retried,
    rescued = rescued + excluded.rescued
