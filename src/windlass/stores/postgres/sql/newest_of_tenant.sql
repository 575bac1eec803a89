select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.tenant, job.seq) < (:value::text, :before::bigint) and job.tenant >= :value::text
order by job.tenant desc, job.seq desc
limit :limit::integer
