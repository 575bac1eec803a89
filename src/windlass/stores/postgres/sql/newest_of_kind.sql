-- those that are finished or scheduled: the others are found by newest_pending_or_running.sql
select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.finished_at is not null or job.state = 'scheduled')
    and (job.kind, job.seq) < (:value::text, :before::bigint)
    and job.kind >= :value::text
order by job.kind desc, job.seq desc
limit :limit::integer
