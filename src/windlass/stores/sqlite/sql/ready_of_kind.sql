select priority, run_at, seq from windlass_job indexed by windlass_ready_kind
where state = 'pending' and queue = :queue and kind = :kind and kind is not null
order by priority, run_at, seq
limit :limit
