-- The claims to take back; :force asks for those too that still hold. Before the mark :lease_mark no lease ends. A job that
-- somebody has locked is passed by: it is being settled, or in a transaction that has fenced it. A lease without an end, or
-- with one that cannot be read, would hold for ever.
with moment as materialized (
    select case when :force::boolean then 'infinity' else coalesce(:now::timestamptz, clock_timestamp()) end as now
),
ended as materialized (
    select *
    from windlass_job
    where state = 'running'
        and lease_expires_at <= (select now from moment)
        and lease_expires_at >= coalesce(:lease_mark::timestamptz, '-infinity')
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
    for update skip locked
),
endless as materialized (
    select *
    from windlass_job
    where state = 'running'
        and lease_expires_at > greatest((select now from moment), '9999-12-31 23:59:59.999999+00')
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
    for update skip locked
),
without as materialized (
    select *
    from windlass_job
    where state = 'running' and lease_expires_at is null
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
    for update skip locked
)
select
    {standing_columns}
from (
    select * from ended
    union all
    select * from endless
    union all
    select * from without
) as expired
limit :limit::integer
