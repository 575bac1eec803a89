-- jobs with what is kept beside them, all of one moment
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
        where ended.seq = windlass_job.seq and (windlass_job.delivery > 0 or windlass_job.log_lines > 0)
    )::text,
    (
        select json_agg(json_build_array(noted.at, noted.level, noted.text, noted.delivery) order by noted.line)
        from windlass_log as noted
        where noted.seq = windlass_job.seq and windlass_job.log_lines > 0
    )::text
from windlass_job
where id = any(:ids::uuid[])
