-- those that are finished: the others are found by newest_unfinished.sql
select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where job.finished_at is not null and (job.kind, job.seq) < ($1::text, $2::bigint) and job.kind >= $1::text
order by job.kind desc, job.seq desc
limit $3::integer
