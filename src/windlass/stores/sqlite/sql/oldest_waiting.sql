{priorities}
select min((
    select min(job.run_at) from windlass_job as job indexed by windlass_ready
    where job.state = 'pending' and job.queue = :queue and job.priority = priorities.priority
        and job.run_at between :earliest and :latest
))
from priorities
where priorities.priority is not null
