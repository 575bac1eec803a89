-- Jobs that run at once, have none of the rarer things, and differ by id and payload alone, as most batches do: each value
-- that is not sent for every job is a tenth of an enqueue. A repeat of a job that is here is left out; where another job has
-- one of the ids the statement fails. A store that was moved takes nothing, and the answer says so.
with moment as materialized (
    select
        coalesce(:now::timestamptz, clock_timestamp()) as now,
        (select value from windlass_meta where name = 'moved' and value <> '') as moved,
        -- who has others waiting behind it does not wait long for a transaction that brings the same id
        case when :lock_timeout::text is not null then set_config('lock_timeout', :lock_timeout::text, true) end
),
added as (
    insert into windlass_job (id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at)
    select
        job.id, :queue::text, :kind::text, job.payload, :codec::text, :priority::integer, 'pending',
        :max_attempts::integer, moment.now, moment.now
    from moment, unnest(:ids::uuid[], :payloads::bytea[]) with ordinality as job (id, payload, place)
    where moment.moved is null
    -- the sequence numbers rise with the order of the batch
    order by job.place
    on conflict (id) do nothing
    returning id
),
total as materialized (
    select count(*) as jobs from added
),
counted as (
    insert into windlass_delta (minute, queue, kind, pending, enqueued_total)
    select date_trunc('minute', moment.now), :queue::text, coalesce(:kind::text, ''), total.jobs, total.jobs
    from moment, total
    where total.jobs > 0
),
-- the names are kept only where they tell something
new as materialized (
    select case when total.jobs < cardinality(:ids::uuid[]) then array(select added.id::text from added) end as ids
    from total
),
receipt as (
    insert into windlass_receipt (request_id, at, reply)
    select :request_id::text, moment.now, array_to_string(new.ids, ',')
    from moment, new
    where moment.moved is null
)
select
    new.ids,
    moment.moved,
    -- Another job has one of the ids, or has brought it at this moment: a part of the batch must not stay, so all fails.
    -- The caller begins anew in a transaction, which tells the two apart.
    case
        when moment.moved is null and new.ids is not null and exists (
            select from unnest(:ids::uuid[]) as job (id)
            where not exists (select from added where added.id = job.id)
                and not exists (
                    select from windlass_job as known
                    where known.id = job.id and known.queue = :queue::text and known.kind is not distinct from :kind::text
                        and known.tenant is null
                )
        )
        then ('Windlass: another job has an id of this batch, ' || moment.now)::integer
    end
from new, moment
