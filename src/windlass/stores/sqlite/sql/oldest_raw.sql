-- jobs with a kind before the first raw one are skipped
{priorities}
select min((
    select job.run_at from windlass_job as job indexed by windlass_ready
    where job.state = 'pending' and job.queue = :queue and job.priority = priorities.priority and job.kind is null
        and job.run_at between :earliest and :latest
    order by job.run_at
    limit 1
))
from priorities
where priorities.priority is not null
