select
    id, rule, timezone, queue, kind, codec, headers, tenant, priority, max_attempts, catch_up, overlap, declared,
    paused, next_run_at, last_run_at, last_job_id, revision, payload
from windlass_schedule
order by id
