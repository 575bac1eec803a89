insert into windlass_schedule (
    id, rule, timezone, queue, kind, codec, headers, tenant, priority, max_attempts, catch_up, overlap, declared,
    paused, next_run_at, last_run_at, last_job_id, payload, revision
)
values (
    $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::integer, $10::integer,
    $11::text, $12::text, $13::boolean, $14::boolean, $15::timestamptz, $16::timestamptz, $17::uuid, $18::bytea,
    nextval('windlass_revision')
)
on conflict (id) do nothing
returning revision
