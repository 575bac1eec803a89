select name, job_id, expires_at, digest from windlass_hold
where expires_at is not null and expires_at > :now
order by expires_at
limit :limit
