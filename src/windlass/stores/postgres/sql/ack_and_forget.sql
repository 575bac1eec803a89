-- as ack.sql, for successes whose records go with the end of the job
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        -- who has others waiting behind it does not wait long for a transaction that holds one of the jobs
        set_config('lock_timeout', :lock_timeout::text, true)
),
done as (
    delete from windlass_job
    where id = any(:ids::uuid[])
        -- before any row is locked
        and (select now from moment) is not null
        -- inside of a function the pairs are not joined but looked up, which costs the same however many there are
        and coalesce((id, token) in (select * from unnest(:ids::uuid[], :tokens::uuid[])), false)
        -- only a job that runs has a lease; by its state it would be looked for among all that run
        and lease_expires_at is not null
        -- a job that others follow is left to finish.sql and forget.sql
        and not has_followers
    returning seq, id, queue, kind, hold, hold_until, delivery, log_lines
),
freed as (
    delete from windlass_hold
    where name = any(array(select hold from done where hold_until in ('claimed', 'finished')))
        and job_id = any(array(select id from done where hold_until in ('claimed', 'finished')))
),
deliveries as (
    delete from windlass_delivery where seq = any(array(select seq from done where delivery > 1 or log_lines > 0))
),
lines as (
    delete from windlass_log where seq = any(array(select seq from done where log_lines > 0))
),
counted as (
    insert into windlass_delta (minute, queue, kind, running, succeeded_total)
    select date_trunc('minute', (select now from moment)), queue, coalesce(kind, ''), -count(*), count(*)
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
