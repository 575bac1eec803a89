-- waiting jobs with what is kept beside them, as get.sql, and the keys that they hold
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select
    {job_columns},
    (
        select json_agg(
            json_build_array(
                ended.delivery, ended.attempt, ended.started_at, ended.ended_at, ended.worker, ended.outcome,
                ended.message, ended.type, ended.traceback, ended.module, ended.retried_at
            )
            order by ended.delivery
        )
        from windlass_delivery as ended
        where ended.seq = job.seq and (job.delivery > 0 or job.log_lines > 0)
    )::text,
    (
        select json_agg(json_build_array(noted.at, noted.level, noted.text, noted.delivery) order by noted.line)
        from windlass_log as noted
        where noted.seq = job.seq and job.log_lines > 0
    )::text,
    held.name, job.hold_until,
    case when held.expires_at is not null then least(held.expires_at, '9999-12-31 23:59:59.999999+00') end, held.digest
from moment
cross join windlass_job as job
left join lateral (
    select hold.name, hold.expires_at, hold.digest
    from windlass_hold as hold
    where hold.name = job.hold and hold.job_id = job.id
        and (hold.expires_at is null or hold.expires_at > moment.now)
    limit 1
) as held on true
where job.seq = any(:seqs::bigint[])
order by job.seq
