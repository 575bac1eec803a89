-- the columns of a `Standing`
seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority,
-- a damaged time is given as one that every driver can read
least(greatest(run_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00'),
case
    when claimed_at is null then null
    else least(greatest(claimed_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00')
end,
worker, token::text, unique_key, hold, hold_until, log_lines
