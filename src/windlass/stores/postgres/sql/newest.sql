-- the newest that match among the last :most before a number; what is looked at does not grow with what is there
select {job_columns}
from (
    select * from windlass_job where seq < :before::bigint order by seq desc limit :most::integer
) as looked
where true
    {job_filter}
order by seq desc
limit :limit::integer
