select min(run_at) from windlass_job indexed by windlass_due where state = 'scheduled' and queue = :queue
