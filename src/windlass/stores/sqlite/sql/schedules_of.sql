-- those of some ids, a JSON array
select
    id, rule, timezone, queue, kind, codec, headers, tenant, priority, max_attempts, catch_up, overlap, declared,
    paused, next_run_at, last_run_at, last_job_id, revision, payload
from windlass_schedule
where id in (select value from json_each(?))
order by id
