delete from windlass_hold where job_id = :job_id and expires_at is null
