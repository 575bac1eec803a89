-- those of some sequence numbers, a JSON array: the columns of `get.sql`, and the key that each may hold
select
    seq, id, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery, created_at,
    run_at, claimed_at, lease_expires_at, finished_at, worker, last_error, result, result_codec, progress,
    cancel_requested, unique_key, parent_id, schedule_id, limit_key, log_lines, hold, hold_until
from windlass_job
where seq in (select value from json_each(?))
order by seq
