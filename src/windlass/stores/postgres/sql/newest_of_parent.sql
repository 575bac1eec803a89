select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.parent_id, job.seq) < ($1::uuid, $2::bigint) and job.parent_id >= $1::uuid
order by job.parent_id desc, job.seq desc
limit $3::integer
