-- steps from kind to kind by the index instead of reading every pending job
with recursive kinds (kind) as (
    select (
        select min(kind) from windlass_job indexed by windlass_ready_kind
        where state = 'pending' and queue = :queue and kind is not null
    )
    union all
    select (
        select min(job.kind) from windlass_job as job indexed by windlass_ready_kind
        where job.state = 'pending' and job.queue = :queue and job.kind > kinds.kind and job.kind is not null
    )
    from kinds
    where kinds.kind is not null
)
select kind from kinds where kind is not null
