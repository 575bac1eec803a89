-- raw jobs have no index of their own, which all of them would pay for: strange kinds ahead of them are stepped over
select priority, run_at, seq from windlass_job indexed by windlass_ready
where state = 'pending' and queue = :queue and kind is null
order by priority, run_at, seq
limit :limit
