update windlass_schedule
set next_run_at = $2::timestamptz,
    last_run_at = $3::timestamptz,
    last_job_id = $4::uuid,
    revision = nextval('windlass_revision')
where id = $1::text
