update windlass_schedule
set rule = $2::text,
    timezone = $3::text,
    queue = $4::text,
    kind = $5::text,
    codec = $6::text,
    headers = $7::text,
    tenant = $8::text,
    priority = $9::integer,
    max_attempts = $10::integer,
    catch_up = $11::text,
    overlap = $12::text,
    declared = $13::boolean,
    paused = $14::boolean,
    next_run_at = $15::timestamptz,
    last_run_at = $16::timestamptz,
    last_job_id = $17::uuid,
    payload = $18::bytea,
    revision = nextval('windlass_revision')
where id = $1::text and revision = $19::bigint
returning revision
