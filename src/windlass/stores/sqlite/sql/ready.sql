select priority, run_at, seq, kind from windlass_job indexed by windlass_ready
where state = 'pending' and queue = :queue
order by priority, run_at, seq
limit :limit
