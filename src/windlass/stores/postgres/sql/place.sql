-- what stands between a job and its claim; those ahead of it are counted up to :most, from mark to mark as claim.sql looks
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select
    moment.now,
    case when job.state = 'pending' then (
        select count(*)
        from (
            select
            -- a row for every queue, also for one that nothing is known of
            from (select) as one
            left join (
                select
                    queue,
                    case when array_ndims(marks) = 1 then marks end as marks,
                    case
                        -- damaged marks, which are no pairs, must not hide a job: without priorities they are not used
                        when array_ndims(priorities) = 1 and array_ndims(marks) = 1 and cardinality(priorities) = cardinality(marks)
                        then case when array_position(priorities, null) is null and array_position(marks, null) is null then priorities end
                    end as priorities
                from windlass_queue
            ) as known on known.queue = job.queue
            cross join lateral unnest(
                array_prepend((-2147483648)::integer, known.priorities),
                array_prepend('-infinity'::timestamptz, known.marks),
                array_append(known.priorities::bigint[], 2147483648)
            ) as part (priority, mark, below)
            cross join lateral (
                select
                from windlass_job as other
                where other.state = 'pending' and other.queue = job.queue
                    and (other.priority, other.run_at) >= (part.priority, part.mark) and other.priority < part.below
                    and (other.priority, other.run_at, other.seq) < (job.priority, job.run_at, job.seq)
                limit :most::integer
            ) as before_it
            limit :most::integer
        ) as ahead
    ) end,
    (
        select hold.job_id::text
        from windlass_hold as hold
        where hold.name = job.hold and (hold.expires_at is null or hold.expires_at > moment.now)
    )
from moment
cross join windlass_job as job
where job.id = :id::uuid
