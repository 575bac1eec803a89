update windlass_schedule
set next_run_at = :next_run_at::timestamptz,
    last_run_at = :last_run_at::timestamptz,
    last_job_id = :last_job_id::uuid,
    revision = nextval('windlass_revision')
where id = :id::text
