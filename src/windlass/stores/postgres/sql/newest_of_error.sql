-- whatever has an error of this type stands there, and others whose type begins alike
select job.seq
from windlass_job as job
-- as one place, so that no other index can be taken, see dead_jobs.sql
where job.last_error is not null
    and (split_part(left(job.last_error, 80), ':', 1), job.seq) < (split_part(left(:value::text, 80), ':', 1), :before::bigint)
    and split_part(left(job.last_error, 80), ':', 1) >= split_part(left(:value::text, 80), ':', 1)
order by split_part(left(job.last_error, 80), ':', 1) desc, job.seq desc
limit :limit::integer
