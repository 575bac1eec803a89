update windlass_schedule
set rule = :rule::text,
    timezone = :timezone::text,
    queue = :queue::text,
    kind = :kind::text,
    codec = :codec::text,
    headers = :headers::text,
    tenant = :tenant::text,
    priority = :priority::integer,
    max_attempts = :max_attempts::integer,
    catch_up = :catch_up::text,
    overlap = :overlap::text,
    declared = :declared::boolean,
    paused = :paused::boolean,
    next_run_at = :next_run_at::timestamptz,
    last_run_at = :last_run_at::timestamptz,
    last_job_id = :last_job_id::uuid,
    payload = :payload::bytea,
    revision = nextval('windlass_revision')
where id = :id::text and revision = :revision::bigint
returning revision
