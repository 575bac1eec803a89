-- what a claim would return of these jobs
select {claimed_columns}
from windlass_job
where seq in (select value from json_each(:seqs))
order by priority, run_at, seq
