insert into windlass_hold (name, job_id, expires_at, digest) values (:name, :job_id, :expires_at, :digest)
on conflict (name) do update set
    job_id = excluded.job_id, expires_at = excluded.expires_at, digest = excluded.digest
