-- what a move needs to know of a job
select {standing_columns}
from windlass_job
where id = :job_id
