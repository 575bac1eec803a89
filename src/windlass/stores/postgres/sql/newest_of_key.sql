select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where (job.unique_key, job.seq) < (:value::text, :before::bigint) and job.unique_key >= :value::text
order by job.unique_key desc, job.seq desc
limit :limit::integer
