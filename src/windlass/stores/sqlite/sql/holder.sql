select job_id, expires_at, digest from windlass_hold where name = :name and (expires_at is null or expires_at > :now)
