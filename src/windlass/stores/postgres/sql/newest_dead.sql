-- the newest dead jobs of some queues: of each no more are looked at than are wanted of all, and only by their index
with newest as materialized (
    select dead.seq
    from unnest(:queues::text[]) as line (name)
    cross join lateral (
        select job.seq
        from windlass_job as job
        -- as one place, so that no other index can be taken, see dead_jobs.sql
        where job.state = 'dead' and (job.queue, job.seq) < (line.name, :before::bigint) and job.queue >= line.name
        order by job.queue desc, job.seq desc
        limit :limit::integer
    ) as dead
    order by dead.seq desc
    limit :limit::integer
)
select {job_columns}
from windlass_job
where seq = any(array(select newest.seq from newest))
order by seq desc
