-- The most looked at list has an index of its own. Its two columns are compared as one place, so that no other index
-- can be taken for it: by their numbers alone all jobs would be looked at for a few dead ones.
select
    seq, id::text, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery,
    created_at, run_at, claimed_at, lease_expires_at, finished_at, worker, last_error, result, result_codec, progress,
    cancel_requested, unique_key, parent_id::text, schedule_id, limit_key, log_lines
from windlass_job
where state = 'dead' and (queue, seq) > ($1::text, $2::bigint) and queue <= $1::text
order by queue, seq
limit $3::integer
