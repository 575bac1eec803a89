-- steps from kind to kind by the index instead of reading every pending job
with recursive kinds (kind) as (
    select (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = $1::text and job.kind is not null
        order by job.kind
        limit 1
    )
    union all
    select (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = $1::text and job.kind > kinds.kind and job.kind is not null
        order by job.kind
        limit 1
    )
    from kinds
    where kinds.kind is not null
)
select kind from kinds where kind is not null
