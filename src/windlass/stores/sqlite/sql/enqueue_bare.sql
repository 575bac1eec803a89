-- most jobs have nothing else, and each value that is not bound saves a hundredth of an enqueue
insert into windlass_job (
    seq, id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing
