-- the most looked at list has an index of its own
select
    seq, id, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery, created_at,
    run_at, claimed_at, lease_expires_at, finished_at, worker, last_error, result, result_codec, progress,
    cancel_requested, unique_key, parent_id, schedule_id, limit_key, log_lines
from windlass_job indexed by windlass_dead
where state = 'dead' and queue = :queue and seq > :after
order by seq
limit :limit
