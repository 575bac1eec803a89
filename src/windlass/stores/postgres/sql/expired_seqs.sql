-- as expired.sql, but nothing is locked
with moment as materialized (
    select case when $2::boolean then 'infinity' else coalesce($1::timestamptz, clock_timestamp()) end as now
)
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at <= (select now from moment)
        and lease_expires_at >= coalesce($6::timestamptz, '-infinity')
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
)
union all
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at > greatest((select now from moment), '9999-12-31 23:59:59.999999+00')
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
)
union all
(
    select seq
    from windlass_job
    where state = 'running'
        and lease_expires_at is null
        and ($3::text[] is null or queue = any($3::text[]))
        and ($4::text[] is null or worker = any($4::text[]))
    order by lease_expires_at, seq
    limit $5::integer
)
limit $5::integer
