-- The first ready jobs of some queues, strictly in the order of the queues. Nothing is claimed, and the answer says so,
-- when a job has come due that must be promoted first, when one of a kind is ahead that the caller does not know, or when
-- one is damaged and must be set aside first.
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        -- a store that was moved gives nothing, and the answer says so
        (select value from windlass_meta where name = 'moved' and value <> '') as moved
),
-- never deletes anything: its lock on the table lets a pause wait for the claims that are under way
gate as (
    delete from windlass_gate where false
),
line as materialized (
    select wanted.queue, known.priorities, known.marks, known.due_mark
    from unnest(:queues::text[]) with ordinality as wanted (queue, place)
    -- with a limit, so that it is never a join that reads the rows of all queues
    left join lateral (
        select
            paused,
            case when array_ndims(marks) = 1 then marks end as marks,
            due_mark,
            case
                -- damaged marks, which are no pairs, must not hide a job: without priorities they are not used
                when array_ndims(priorities) = 1 and array_ndims(marks) = 1 and cardinality(priorities) = cardinality(marks)
                then case when array_position(priorities, null) is null and array_position(marks, null) is null then priorities end
            end as priorities
        from windlass_queue
        where windlass_queue.queue = wanted.queue
        limit 1
    ) as known on true
    where known.paused is not true and (select moved from moment) is null
    order by wanted.place
),
-- with :promoted they were looked for just now, and somebody else has them locked: they must not keep the others waiting
flag as materialized (
    select not :promoted::boolean and exists (
        select from line
        -- not "exists": that could become a join, which does not know of the queue when it looks into the index
        cross join lateral (
            select job.seq
            from windlass_job as job
            where job.queue = line.queue and job.state = 'scheduled' and job.run_at <= (select now from moment)
                and job.run_at >= coalesce(line.due_mark, '-infinity')
            limit 1
        ) as due
    ) as due
),
-- With kinds, a look at them that locks nothing: whoever knows the others would pass them by while they are locked here,
-- and be told of them by nobody afterwards.
seen as materialized (
    select exists (
        select from (
            select ready.kind
            from line
            cross join lateral unnest(
                array_prepend((-2147483648)::integer, line.priorities),
                array_prepend('-infinity'::timestamptz, line.marks),
                array_append(line.priorities::bigint[], 2147483648)
            ) as part (priority, mark, below)
            cross join lateral (
                select job.kind
                from windlass_job as job
                where job.state = 'pending' and job.queue = line.queue
                    and (job.priority, job.run_at) >= (part.priority, part.mark) and job.priority < part.below
                order by job.priority, job.run_at, job.seq
                limit :limit::integer
            ) as ready
            where :kinds::text[] is not null
            limit :limit::integer
        ) as ahead
        where not (case when ahead.kind is null then :raw::boolean else ahead.kind = any(:kinds::text[]) end)
    ) as strange
),
heads as materialized (
    select ready.seq, ready.kind, ready.damaged
    from line
    -- from one mark to the next: before a mark of its priority no job can wait
    cross join lateral unnest(
        array_prepend((-2147483648)::integer, line.priorities),
        array_prepend('-infinity'::timestamptz, line.marks),
        array_append(line.priorities::bigint[], 2147483648)
    ) as part (priority, mark, below)
    cross join lateral (
        select
            job.seq,
            job.kind,
            (
                {is_damaged}
            ) as damaged
        from windlass_job as job
        where job.state = 'pending' and job.queue = line.queue
            and (job.priority, job.run_at) >= (part.priority, part.mark) and job.priority < part.below
        order by job.priority, job.run_at, job.seq
        limit :limit::integer
        -- skip locked: two servers never wait for each other's rows
        for update skip locked
    ) as ready
    -- looked at once, before the queues, where two more joins would look for each row
    where not (select due from flag) and not (select strange from seen)
    limit :limit::integer
),
-- A strange kind, also behind those that others have locked, or a damaged job: then none is claimed, and the caller first
-- does what must be done.
obstacle as materialized (
    select
        seen.strange or exists (
            select from heads
            where damaged
                or :kinds::text[] is not null
                    and not (case when kind is null then :raw::boolean else kind = any(:kinds::text[]) end)
        ) as ahead
    from seen
),
claimed as (
    update windlass_job
    set state = 'running',
        -- a number that something else has written may be the largest there is
        attempt = least(attempt, 2147483646) + 1,
        delivery = least(delivery, 2147483646) + 1,
        claimed_at = (select now from moment),
        lease_expires_at = least((select now from moment) + :lease::interval, '9999-12-31 23:59:59.999999+00'),
        worker = :worker::text,
        progress = null,
        unique_key = case when hold_until = 'claimed' then null else unique_key end,
        -- in the update itself: every claimed job gets a token of its own
        token = gen_random_uuid()
    -- an array, so that there is no join whose plan could go wrong
    where seq = any(array(select heads.seq from heads where not (select ahead from obstacle)))
    returning
        {returned_columns}
),
freed as (
    delete from windlass_hold
    where name = any(array(select hold from claimed where hold_until = 'claimed'))
        and job_id = any(array(select id from claimed where hold_until = 'claimed'))
),
counted as (
    insert into windlass_delta (minute, queue, kind, pending, running)
    select date_trunc('minute', (select now from moment)), queue, '', -count(*), count(*)
    from claimed
    group by queue
),
receipt as (
    insert into windlass_receipt (request_id, at, reply)
    select :request_id::text, (select now from moment), string_agg(seq || ':' || delivery, ',')
    from claimed
    -- an empty claim writes nothing, unless it may be the repetition of one that was given jobs
    having count(*) > 0 or :repeated::boolean
)
select
    moment.now, moment.moved, flag.due, obstacle.ahead,
    case when obstacle.ahead then array(select heads.seq from heads where heads.damaged) end,
    {claimed_columns}
from moment
cross join flag
cross join obstacle
left join claimed on true
