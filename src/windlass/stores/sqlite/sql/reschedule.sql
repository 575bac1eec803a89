update windlass_job set state = :state, run_at = :run_at where seq = :seq
