select {job_columns}
from windlass_job
where seq in (select value from json_each(:seqs))
order by seq
