-- As standing.sql, of those jobs alone that nobody has locked. $2 are the ones that may be deleted, which a transaction that
-- has fenced them does not allow. Nothing is waited for longer than $3 milliseconds, until the transaction ends.
with patience as materialized (
    select set_config('lock_timeout', $3::text, true) as value
),
kept as materialized (
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
    where id = any($1::uuid[]) and (select value from patience) is not null
    order by id
    for no key update skip locked
),
whole as materialized (
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
    where id = any($2::uuid[]) and (select value from patience) is not null
    order by id
    for update skip locked
)
select * from kept
union all
select * from whole
