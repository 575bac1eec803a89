-- only the rows of the result are read whole
select {job_columns}
from windlass_job
where seq in (
    select seq from windlass_job
    where seq in (select value from json_each(:seqs))
        {job_filter}
    order by seq desc
    limit :limit
)
