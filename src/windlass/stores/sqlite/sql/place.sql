select queue, state, hold, priority, run_at, seq from windlass_job where id = :job_id
