-- steps from priority to priority by the index; jobs with a kind ahead of the first raw one are stepped over
with recursive priorities (priority) as (
    select (
        select min(priority) from windlass_job indexed by windlass_ready where state = 'pending' and queue = :queue
    )
    union all
    select (
        select min(job.priority) from windlass_job as job indexed by windlass_ready
        where job.state = 'pending' and job.queue = :queue and job.priority > priorities.priority
    )
    from priorities
    where priorities.priority is not null
)
select min((
    select job.run_at from windlass_job as job indexed by windlass_ready
    where job.state = 'pending' and job.queue = :queue and job.priority = priorities.priority and job.kind is null
    order by job.run_at
    limit 1
))
from priorities
where priorities.priority is not null
