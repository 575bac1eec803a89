-- As claim.sql, for what the heads of the queues alone do not tell: the most urgent jobs of all queues together
-- (:by_priority), or those of some kinds only, with strange ones ahead. The head of each kind is looked at by itself, so
-- that jobs of other kinds cost nothing, however many there are. Others may take what was chosen here before it is locked:
-- the answer says whether there was any. With a damaged job among them none is claimed: the caller sets it aside first, and
-- asks again.
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
    select wanted.queue, wanted.place, known.priorities, known.marks, known.due_mark
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
-- From one mark to the next, here and for each kind: before a mark of its priority no job can wait, of whatever kind. Where
-- the first parts give enough the others are not looked at.
of_any_kind as (
    select line.place, job.*
    from line
    cross join lateral (
        select ready.*
        from unnest(
            array_prepend((-2147483648)::integer, line.priorities),
            array_prepend('-infinity'::timestamptz, line.marks),
            array_append(line.priorities::bigint[], 2147483648)
        ) as part (priority, mark, below)
        cross join lateral (
            select job.priority, job.run_at, job.seq
            from windlass_job as job
            where job.state = 'pending' and job.queue = line.queue
                and (job.priority, job.run_at) >= (part.priority, part.mark) and job.priority < part.below
            order by job.priority, job.run_at, job.seq
            limit :limit::integer
        ) as ready
        limit :limit::integer
    ) as job
    where :kinds::text[] is null
),
of_kind as (
    select line.place, job.*
    from line
    cross join unnest(:kinds::text[]) as wanted (kind)
    cross join lateral (
        select ready.*
        from unnest(
            array_prepend((-2147483648)::integer, line.priorities),
            array_prepend('-infinity'::timestamptz, line.marks),
            array_append(line.priorities::bigint[], 2147483648)
        ) as part (priority, mark, below)
        cross join lateral (
            select job.priority, job.run_at, job.seq
            from windlass_job as job
            where job.state = 'pending' and job.queue = line.queue and job.kind = wanted.kind and job.kind is not null
                and (job.priority, job.run_at) >= (part.priority, part.mark) and job.priority < part.below
            order by job.priority, job.run_at, job.seq
            limit :limit::integer
        ) as ready
        limit :limit::integer
    ) as job
),
-- raw jobs have no index of their own, which all of them would pay for: strange kinds ahead of them are stepped over
raw as (
    select line.place, job.*
    from line
    cross join lateral (
        select ready.*
        from unnest(
            array_prepend((-2147483648)::integer, line.priorities),
            array_prepend('-infinity'::timestamptz, line.marks),
            array_append(line.priorities::bigint[], 2147483648)
        ) as part (priority, mark, below)
        cross join lateral (
            select job.priority, job.run_at, job.seq
            from windlass_job as job
            where job.state = 'pending' and job.queue = line.queue and job.kind is null
                and (job.priority, job.run_at) >= (part.priority, part.mark) and job.priority < part.below
            order by job.priority, job.run_at, job.seq
            limit :limit::integer
        ) as ready
        limit :limit::integer
    ) as job
    where :kinds::text[] is not null and :raw::boolean
),
chosen as materialized (
    select heads.seq
    from (select * from of_any_kind union all select * from of_kind union all select * from raw) as heads
    where not (select due from flag)
    order by case when :by_priority::boolean then 0 else heads.place end, heads.priority, heads.run_at, heads.seq
    limit :limit::integer
),
ready as materialized (
    select
        job.seq,
        (
            {is_damaged}
        ) as damaged
    from windlass_job as job
    -- the state is written so that nobody looks through all pending jobs for it
    where job.seq = any(array(select chosen.seq from chosen)) and job.state || '' = 'pending'
    for update skip locked
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
        token = gen_random_uuid()
    where seq = any(array(select ready.seq from ready where not exists (select from ready where damaged)))
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
    moment.now, moment.moved, flag.due, exists (select from chosen), array(select ready.seq from ready where ready.damaged),
    {claimed_columns}
from moment
cross join flag
left join claimed on true
