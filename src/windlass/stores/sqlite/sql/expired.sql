select
    seq, id, queue, kind, state, attempt, max_attempts, delivery, run_at, claimed_at, worker, token, unique_key, hold,
    hold_until, log_lines
from windlass_job indexed by windlass_leased
where state = 'running' and lease_expires_at <= :now
    and (:queues is null or queue in (select value from json_each(:queues)))
    and (:workers is null or worker in (select value from json_each(:workers)))
order by lease_expires_at
limit :limit
