select {job_columns}
from windlass_job
where id = :job_id
