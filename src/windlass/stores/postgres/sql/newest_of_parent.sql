select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.parent_id, job.seq) < (:value::uuid, :before::bigint) and job.parent_id >= :value::uuid
order by job.parent_id desc, job.seq desc
limit :limit::integer
