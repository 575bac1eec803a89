-- steps from priority to priority by the index instead of reading every pending job
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
