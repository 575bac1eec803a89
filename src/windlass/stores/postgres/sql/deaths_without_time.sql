-- Damaged ones: a dead job has the time of its death.
with latest as materialized (
    select dead.seq
    from unnest(:queues::text[]) as line (name)
    cross join lateral (
        select job.seq
        from windlass_job as job
        -- as one place, so that no other index can be taken, see dead_jobs.sql
        where job.state = 'dead' and (job.queue, job.seq) < (line.name, :before::bigint) and job.queue >= line.name
            and job.finished_at is null
        order by job.queue desc, job.seq desc
        limit :limit::integer
    ) as dead
    order by dead.seq desc
    limit :limit::integer
)
select {job_columns}
from windlass_job
where seq = any(array(select latest.seq from latest))
order by seq desc
