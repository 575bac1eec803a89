insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module, retried_at
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (seq, delivery) do nothing
