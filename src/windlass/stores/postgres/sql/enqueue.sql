-- As enqueue_alike.sql, with all that a job can have. Without the name of a request it is a part of a move that looks by
-- itself whether the store was moved, and whether another job has one of the ids.
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        case when :request_id::text is not null then (
            select value from windlass_meta where name = 'moved' and value <> ''
        ) end as moved,
        -- who has others waiting behind it does not wait long for a transaction that brings the same id
        case when :lock_timeout::text is not null then set_config('lock_timeout', :lock_timeout::text, true) end
),
given as materialized (
    select
        job.*,
        -- to the drivers the last moment of all is infinity, which nobody can count with
        least(
            -- in UTC, where a day has 24 hours: the connection may be a caller's, in any time zone
            coalesce((moment.now at time zone 'UTC' + job.delay) at time zone 'UTC', greatest(job.wanted_at, moment.now)),
            '9999-12-31 23:59:59.999999+00'
        ) as run_at
    from moment, unnest(
        :ids::uuid[], :queues::text[], :kinds::text[], :payloads::bytea[], :codecs::text[], :priorities::integer[],
        :max_attempts::integer[], :run_ats::timestamptz[], :delays::interval[], :headers::text[], :tenants::text[],
        :unique_keys::text[], :parent_ids::uuid[], :schedule_ids::text[], :limit_keys::text[], :holds::text[],
        :hold_untils::text[]
    ) with ordinality as job (
        id, queue, kind, payload, codec, priority, max_attempts, wanted_at, delay, headers, tenant, unique_key,
        parent_id, schedule_id, limit_key, hold, hold_until, place
    )
    where moment.moved is null
),
added as (
    insert into windlass_job (
        id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at, headers, tenant, unique_key,
        parent_id, schedule_id, limit_key, hold, hold_until
    )
    select
        given.id, given.queue, given.kind, given.payload, given.codec, given.priority,
        case when given.run_at > moment.now then 'scheduled' else 'pending' end,
        given.max_attempts, moment.now, given.run_at, given.headers, given.tenant, given.unique_key, given.parent_id,
        given.schedule_id, given.limit_key, given.hold, given.hold_until
    from moment, given
    order by given.place
    on conflict (id) do nothing
    returning id, queue, kind, tenant, state
),
counted as (
    insert into windlass_delta (minute, queue, kind, scheduled, pending, enqueued_total)
    select
        date_trunc('minute', min(moment.now)), added.queue, coalesce(added.kind, ''),
        count(*) filter (where added.state = 'scheduled'), count(*) filter (where added.state = 'pending'), count(*)
    from added, moment
    group by added.queue, added.kind
),
total as materialized (
    select count(*) as jobs from added
),
new as materialized (
    select case when total.jobs < cardinality(:ids::uuid[]) then array(select added.id::text from added) end as ids
    from total
),
receipt as (
    insert into windlass_receipt (request_id, at, reply)
    select :request_id::text, moment.now, array_to_string(new.ids, ',')
    from moment, new
    where :request_id::text is not null and moment.moved is null
)
select
    new.ids,
    moment.moved,
    -- Another job has one of the ids, or has brought it at this moment: a part of the batch must not stay, so all fails.
    -- The caller begins anew in a transaction, which tells the two apart.
    case
        when new.ids is not null and :request_id::text is not null and exists (
            select from given
            where not exists (
                    select from added
                    where added.id = given.id and added.queue = given.queue
                        and added.kind is not distinct from given.kind and added.tenant is not distinct from given.tenant
                )
                and not exists (
                    select from windlass_job as known
                    where known.id = given.id and known.queue = given.queue
                        and known.kind is not distinct from given.kind and known.tenant is not distinct from given.tenant
                )
        )
        then ('Windlass: another job has an id of this batch, ' || moment.now)::integer
    end
from new, moment
