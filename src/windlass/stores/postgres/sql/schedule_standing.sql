-- what a firing needs to know of a schedule, which nobody else can fire or change until the transaction ends
select
    id, overlap, next_run_at, last_run_at, last_job_id::text, revision,
    not paused and next_run_at is not null and next_run_at <= coalesce(:now::timestamptz, clock_timestamp())
from windlass_schedule
where id = :id::text
for update
