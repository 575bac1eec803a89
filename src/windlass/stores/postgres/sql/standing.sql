-- What a move needs to know of jobs, which no other move can change until the transaction ends. In the order of their
-- ids: whoever waits for many jobs takes them in this order, so that no two wait for each other. It is that of the index
-- by which ack.sql finds its jobs, which would have to sort them for any other. A transaction that has fenced a job is
-- not waited for, see fence.sql. With $2 nothing is waited for longer than so many milliseconds, until the transaction ends.
select
    seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority,
    -- a damaged time is given as one that every driver can read
    least(greatest(run_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00'),
    case
        when claimed_at is null then null
        else least(greatest(claimed_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00')
    end,
    worker, token::text, unique_key, hold, hold_until, log_lines
from windlass_job
where id = any($1::uuid[])
    -- before any row is locked
    and (select coalesce(case when $2::text is not null then set_config('lock_timeout', $2::text, true) end, '')) is not null
order by id
for no key update
