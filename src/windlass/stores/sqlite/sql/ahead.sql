-- among the first thousand of the line: what comes behind them need not be looked at, however long it is
select count(*) from (
    select priority, run_at, seq from windlass_job indexed by windlass_ready
    where state = 'pending' and queue = :queue
    order by priority, run_at, seq
    limit :limit
)
where (priority, run_at, seq) < (:priority, :run_at, :seq)
