-- what a move needs to know of a job
select
    seq, id, queue, kind, state, attempt, max_attempts, delivery, run_at, claimed_at, worker, token, unique_key, hold,
    hold_until, log_lines
from windlass_job
where id = ?
