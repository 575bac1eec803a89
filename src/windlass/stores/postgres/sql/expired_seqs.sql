-- as expired.sql, but nothing is locked
with moment as materialized (
    select case when :force::boolean then 'infinity' else coalesce(:now::timestamptz, clock_timestamp()) end as now
)
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at <= (select now from moment)
        and lease_expires_at >= coalesce(:lease_mark::timestamptz, '-infinity')
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
)
union all
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at > greatest((select now from moment), '9999-12-31 23:59:59.999999+00')
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
)
union all
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at is null
        and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:workers::text[] is null or worker = any(:workers::text[]))
    order by lease_expires_at, seq
    limit :limit::integer
)
limit :limit::integer
