-- Jobs of another store, as they were there, in the order that they are given in. One that is due is ready; one whose
-- id is here already is left out, and the caller checks whether it is the same job.
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
insert into windlass_job (
    id, queue, kind, payload, codec, priority, state, max_attempts, attempt, delivery, created_at, run_at, headers, tenant,
    last_error, progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, hold, hold_until, log_lines
)
select
    job.id, $2::text, job.kind, job.payload, job.codec, job.priority,
    case when job.run_at > moment.now then job.state else 'pending' end,
    job.max_attempts, job.attempt, job.delivery, job.created_at,
    -- the driver takes the last moment there is for the end of time
    least(job.run_at, '9999-12-31 23:59:59.999999+00'),
    job.headers, job.tenant, job.last_error, job.progress, job.cancel_requested, job.unique_key, job.parent_id,
    job.schedule_id, job.limit_key, job.hold, job.hold_until, job.log_lines
from moment, unnest(
    $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::integer[], $8::text[], $9::integer[], $10::integer[],
    $11::integer[], $12::timestamptz[], $13::timestamptz[], $14::text[], $15::text[], $16::text[], $17::text[],
    $18::boolean[], $19::text[], $20::uuid[], $21::text[], $22::text[], $23::text[], $24::text[], $25::integer[]
) with ordinality as job (
    id, kind, payload, codec, priority, state, max_attempts, attempt, delivery, created_at, run_at, headers, tenant,
    last_error, progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, hold, hold_until, log_lines,
    place
)
order by job.place
on conflict (id) do nothing
returning seq, id::text, kind, state, priority, run_at
