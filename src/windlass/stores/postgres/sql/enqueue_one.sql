-- One job that runs at once and has none of the rarer things. A job that is here under its id stays as it is: it is looked for
-- first, since an insert that expects a conflict writes more. Where another transaction brings the same id at the same
-- moment this fails as a whole, and finds it when it is repeated. A store that was moved takes nothing, and says so.
-- repeats: null for a new id, true for a repeat of the job that has the id, false for another job, which is refused.
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        (select value from windlass_meta where name = 'moved' and value <> '') as moved,
        (
            select queue = :queue::text and kind is not distinct from :kind::text and tenant is null
            from windlass_job
            where id = :id::uuid
        ) as repeats,
        -- who has others waiting behind it does not wait long for a transaction that brings the same id
        case when :lock_timeout::text is not null then set_config('lock_timeout', :lock_timeout::text, true) end
),
added as (
    insert into windlass_job (id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at)
    select
        :id::uuid, :queue::text, :kind::text, :payload::bytea, :codec::text, :priority::integer, 'pending',
        :max_attempts::integer, now, now
    from moment
    where moved is null and repeats is null
),
counted as (
    insert into windlass_delta (minute, queue, kind, pending, enqueued_total)
    select date_trunc('minute', now), :queue::text, coalesce(:kind::text, ''), 1, 1
    from moment
    where moved is null and repeats is null
),
receipt as (
    insert into windlass_receipt (request_id, at, reply)
    select :request_id::text, now, case when repeats then '' end
    from moment
    where moved is null and repeats is distinct from false
)
select repeats, moved from moment
