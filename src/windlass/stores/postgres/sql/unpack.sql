-- Jobs of another store, as they were there, in the order that they are given in. One that is due is ready; one whose
-- id is here already is left out, and the caller checks whether it is the same job.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
insert into windlass_job (
    id, queue, kind, payload, codec, priority, state, max_attempts, attempt, delivery, created_at, run_at, headers, tenant,
    last_error, progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, hold, hold_until, log_lines
)
select
    job.id, :queue::text, job.kind, job.payload, job.codec, job.priority,
    case when job.run_at > moment.now then job.state else 'pending' end,
    job.max_attempts, job.attempt, job.delivery, job.created_at,
    -- the driver takes the last moment there is for the end of time
    least(job.run_at, '9999-12-31 23:59:59.999999+00'),
    job.headers, job.tenant, job.last_error, job.progress, job.cancel_requested, job.unique_key, job.parent_id,
    job.schedule_id, job.limit_key, job.hold, job.hold_until, job.log_lines
from moment, unnest(
    :ids::uuid[], :kinds::text[], :payloads::bytea[], :codecs::text[], :priorities::integer[], :states::text[],
    :max_attempts::integer[], :attempts::integer[], :deliveries::integer[], :created_ats::timestamptz[],
    :run_ats::timestamptz[], :headers::text[], :tenants::text[], :last_errors::text[], :progress::text[],
    :cancel_requested::boolean[], :unique_keys::text[], :parent_ids::uuid[], :schedule_ids::text[], :limit_keys::text[],
    :holds::text[], :hold_untils::text[], :log_lines::integer[]
) with ordinality as job (
    id, kind, payload, codec, priority, state, max_attempts, attempt, delivery, created_at, run_at, headers, tenant,
    last_error, progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, hold, hold_until, log_lines,
    place
)
order by job.place
on conflict (id) do nothing
returning seq, id::text, kind, state, priority, run_at
