select {job_columns}
from windlass_job not indexed
where seq > :after
    {job_filter}
order by seq
limit :limit
