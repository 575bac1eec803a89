-- those of some jobs that match, the newest first
select {job_columns}
from windlass_job
where seq = any(:seqs::bigint[])
    {job_filter}
order by seq desc
limit :limit::integer
