-- Plain successes, whose records stay: :ids are ids, :tokens their tokens. There is no join, whose plan could go wrong.
-- :lock_timeout is how many milliseconds a locked job is waited for. The answer is null when all were done, else the ids of
-- those that were.
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        -- who has others waiting behind it does not wait long for a transaction that holds one of the jobs
        set_config('lock_timeout', :lock_timeout::text, true)
),
done as (
    update windlass_job
    set state = 'succeeded',
        finished_at = (select now from moment),
        lease_expires_at = null,
        -- a key that the claim freed is not taken again by a retry
        hold = case when hold_until = 'claimed' then null else hold end
    where id = any(:ids::uuid[])
        -- before any row is locked
        and (select now from moment) is not null
        -- inside of a function the pairs are not joined but looked up, which costs the same however many there are
        and coalesce((id, token) in (select * from unnest(:ids::uuid[], :tokens::uuid[])), false)
        -- only a job that runs has a lease; by its state it would be looked for among all that run
        and lease_expires_at is not null
        -- a job that others follow is left to finish.sql and forget.sql
        and not has_followers
    returning id, queue, kind, hold, hold_until
),
freed as (
    delete from windlass_hold
    where name = any(array(select hold from done where hold_until = 'finished'))
        and job_id = any(array(select id from done where hold_until = 'finished'))
),
counted as (
    insert into windlass_delta (minute, queue, kind, running, succeeded, succeeded_total)
    select date_trunc('minute', (select now from moment)), queue, coalesce(kind, ''), -count(*), count(*), count(*)
    from done
    group by queue, kind
),
total as materialized (
    select count(*) as jobs from done
),
answer as materialized (
    select case when total.jobs < cardinality(:ids::uuid[]) then array(select done.id::text from done) end as ids
    from total
),
receipt as (
    insert into windlass_receipt (request_id, at, reply)
    select :request_id::text, (select now from moment), array_to_string(answer.ids, ',')
    from answer
)
select ids from answer
