select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.tenant, job.seq) < ($1::text, $2::bigint) and job.tenant >= $1::text
order by job.tenant desc, job.seq desc
limit $3::integer
