-- Pending jobs from whose record no claim can be decoded are dead: no worker can be given them, and they must not keep the
-- others waiting. What is stored in them stays as it is, so that it can be repaired, and the job retried. :seqs are jobs
-- that a claim has met at the heads of the queues :queues, and more of these queues are looked at: where one is damaged,
-- many may be. :last_error is the last error with a place for the damage.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
suspects as materialized (
    select seq from unnest(:seqs::bigint[]) as met (seq)
    union
    select ready.seq
    from unnest(:queues::text[]) as wanted (queue)
    left join windlass_queue as known on known.queue = wanted.queue
    cross join lateral (
        select job.seq, job.codec, job.headers, job.created_at, job.run_at
        from windlass_job as job
        where job.state = 'pending' and job.queue = wanted.queue
        order by job.priority, job.run_at, job.seq
        limit 1000
    ) as ready
    -- sound ones are not locked, since other claims would pass them by
    where known.paused is not true and (
        {is_damaged}
    )
),
-- no claim waits for another one, or for an operator who repairs such a job
pending as materialized (
    select seq, codec, headers, created_at, run_at
    from windlass_job
    where seq = any(array(select suspects.seq from suspects)) and state || '' = 'pending'
    for update skip locked
),
damaged as materialized (
    select
        seq,
        concat_ws(
            '; ',
            case when codec = '' then 'codec is empty' end,
            case
                when headers is null then null
                when octet_length(headers) > 10000000 then 'headers is too large'
                when headers !~ {header_pattern} then 'headers is not an object of texts'
            end,
            case
                when created_at not between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00'
                then 'created_at is out of range: ' || created_at
            end,
            case
                when run_at not between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00'
                then 'run_at is out of range: ' || run_at
            end
        ) as why
    from pending
),
aside as (
    update windlass_job
    set state = 'dead',
        finished_at = (select now from moment),
        lease_expires_at = null,
        last_error = format(:last_error::text, (select damaged.why from damaged where damaged.seq = windlass_job.seq))
    -- one that was repaired meanwhile is as any other
    where seq = any(array(select damaged.seq from damaged where damaged.why <> ''))
    returning id, queue, kind, hold, hold_until, last_error
),
freed as (
    delete from windlass_hold
    where name = any(array(select hold from aside where hold_until is distinct from 'time'))
        and job_id = any(array(select id from aside where hold_until is distinct from 'time'))
),
counted as (
    insert into windlass_delta (minute, queue, kind, pending, dead, dead_total)
    select date_trunc('minute', (select now from moment)), queue, coalesce(kind, ''), -count(*), count(*), count(*)
    from aside
    group by queue, kind
)
select id::text, last_error from aside
