update windlass_schedule
set next_run_at = :next_run_at, last_run_at = :last_run_at, last_job_id = :last_job_id, revision = :revision
where id = :schedule_id
