-- what a firing needs to know of a schedule
select id, overlap, paused, next_run_at, last_run_at, last_job_id, revision from windlass_schedule where id = :schedule_id
