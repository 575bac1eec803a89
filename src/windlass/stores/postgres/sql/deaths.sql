-- The dead jobs of some queues before a time of death and a number, the last to die first: of each queue no more are looked
-- at than are wanted of all, and only by the pruner's index. A time is microseconds since 1970, the largest ones infinity.
with place as materialized (
    select case :at::bigint
        when 9223372036854775807 then 'infinity'::timestamptz
        when -9223372036854775807 then '-infinity'::timestamptz
        -- days and what is left of one: a number of seconds would be rounded
        else (
            timestamp '1970-01-01' + make_interval(days => (:at::bigint / 86400000000)::integer)
            + (:at::bigint % 86400000000) * interval '1 microsecond'
        ) at time zone 'UTC'
    end as at
),
-- the state stands in a row, so that the index of dead jobs by number is not taken for it
line as materialized (
    select wanted.queue, 'dead' as state from unnest(:queues::text[]) as wanted (queue)
),
latest as materialized (
    select dead.seq
    from place
    cross join line
    cross join lateral (
        select job.seq, job.finished_at
        from windlass_job as job
        where job.queue = line.queue and job.state = line.state and job.finished_at is not null
            and (job.finished_at, job.seq) < (place.at, :before::bigint)
        order by job.finished_at desc, job.seq desc
        limit :limit::integer
    ) as dead
    order by dead.finished_at desc, dead.seq desc
    limit :limit::integer
)
select
    case
        when isfinite(finished_at) then (extract(epoch from finished_at) * 1000000)::bigint
        when finished_at > '1970-01-01 00:00:00+00' then 9223372036854775807
        else -9223372036854775807
    end,
    {job_columns}
from windlass_job
where seq = any(array(select latest.seq from latest))
order by finished_at desc, seq desc
