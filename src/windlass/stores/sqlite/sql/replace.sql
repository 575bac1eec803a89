update windlass_job set state = :state, run_at = :run_at, payload = :payload, codec = :codec where seq = :seq
