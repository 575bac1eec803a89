select {job_columns}
from windlass_job
where seq > :after::bigint
    {job_filter}
order by seq
limit :limit::integer
