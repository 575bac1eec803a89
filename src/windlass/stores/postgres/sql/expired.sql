-- The claims to take back; $2 asks for those too that still hold. Before the mark no lease ends. A job that somebody
-- has locked is passed by: it is being settled, or in a transaction that has fenced it.
with since as materialized (
    select (select value from windlass_meta where name = 'lease_mark')::timestamptz as mark
),
moment as materialized (
    select case when $2::boolean then 'infinity' else coalesce($1::timestamptz, clock_timestamp()) end as now
)
select
    seq, id::text, queue, kind, state, attempt, max_attempts, delivery, priority, run_at, claimed_at, worker,
    token::text, unique_key, hold, hold_until, log_lines
from windlass_job
where state = 'running'
    and lease_expires_at <= (select now from moment)
    and lease_expires_at >= coalesce((select mark from since), '-infinity')
    and ($3::text[] is null or queue = any($3::text[]))
    and ($4::text[] is null or worker = any($4::text[]))
order by lease_expires_at, seq
limit $5::integer
for update skip locked
