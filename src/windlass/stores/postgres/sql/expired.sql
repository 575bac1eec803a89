-- The claims to take back; $2 asks for those too that still hold. Before the mark $6 no lease ends. A job that somebody
-- has locked is passed by: it is being settled, or in a transaction that has fenced it. A lease without an end, or with one
-- that cannot be read, would hold for ever.
with moment as materialized (
    select case when $2::boolean then 'infinity' else coalesce($1::timestamptz, clock_timestamp()) end as now
),
ended as materialized (
    select *
    from windlass_job
    where state = 'running'
        and lease_expires_at <= (select now from moment)
        and lease_expires_at >= coalesce($6::timestamptz, '-infinity')
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
    for update skip locked
),
endless as materialized (
    select *
    from windlass_job
    where state = 'running'
        and lease_expires_at > greatest((select now from moment), '9999-12-31 23:59:59.999999+00')
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
    for update skip locked
),
without as materialized (
    select *
    from windlass_job
    where state = 'running' and lease_expires_at is null
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
    for update skip locked
)
select
    seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority,
    -- a damaged time is given as one that every driver can read
    least(greatest(run_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00'),
    case
        when claimed_at is null then null
        else least(greatest(claimed_at, '0001-01-02 00:00:00+00'), '9999-12-30 00:00:00+00')
    end,
    worker, token::text, unique_key, hold, hold_until, log_lines
from (
    select * from ended
    union all
    select * from endless
    union all
    select * from without
) as expired
limit $5::integer
