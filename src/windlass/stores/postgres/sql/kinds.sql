-- Steps from kind to kind by the index instead of reading every pending job, and over each kind that is known: of those
-- the rows may be many that are gone, and that an old snapshot keeps.
with recursive edges as materialized (
    select distinct edge from unnest(array_prepend('', :known::text[])) as known (edge)
),
gaps as materialized (
    select edge, lead(edge) over (order by edge) as next_edge from edges
),
inside (next_edge, kind) as (
    select gaps.next_edge, (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = :queue::text and job.kind is not null
            and job.kind > gaps.edge and job.kind < gaps.next_edge
        order by job.kind
        limit 1
    )
    from gaps
    where gaps.next_edge is not null
    union all
    select inside.next_edge, (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = :queue::text and job.kind is not null
            and job.kind > inside.kind and job.kind < inside.next_edge
        order by job.kind
        limit 1
    )
    from inside
    where inside.kind is not null
),
beyond (kind) as (
    select (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = :queue::text and job.kind is not null and job.kind > gaps.edge
        order by job.kind
        limit 1
    )
    from gaps
    where gaps.next_edge is null
    union all
    select (
        select job.kind
        from windlass_job as job
        where job.state = 'pending' and job.queue = :queue::text and job.kind is not null and job.kind > beyond.kind
        order by job.kind
        limit 1
    )
    from beyond
    where beyond.kind is not null
)
select kind from inside where kind is not null
union all
select kind from beyond where kind is not null
