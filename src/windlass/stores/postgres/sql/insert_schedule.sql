insert into windlass_schedule (
    id, rule, timezone, queue, kind, codec, headers, tenant, priority, max_attempts, catch_up, overlap, declared,
    paused, next_run_at, last_run_at, last_job_id, payload, revision
)
values (
    :id::text, :rule::text, :timezone::text, :queue::text, :kind::text, :codec::text, :headers::text, :tenant::text,
    :priority::integer, :max_attempts::integer, :catch_up::text, :overlap::text, :declared::boolean, :paused::boolean,
    :next_run_at::timestamptz, :last_run_at::timestamptz, :last_job_id::uuid, :payload::bytea,
    nextval('windlass_revision')
)
on conflict (id) do nothing
returning revision
