-- What all migrations make, in one piece: to be read, not to be run.

create table windlass_audit (
    entry bigint generated always as identity not null,
    at timestamp with time zone not null,
    actor text not null,
    action text not null,
    target text not null,
    detail text not null,
    constraint windlass_audit_pkey PRIMARY KEY (entry)
);

create table windlass_count (
    minute timestamp with time zone not null,
    queue text not null,
    kind text not null,
    scheduled bigint not null default 0,
    pending bigint not null default 0,
    running bigint not null default 0,
    succeeded bigint not null default 0,
    dead bigint not null default 0,
    cancelled bigint not null default 0,
    enqueued_total bigint not null default 0,
    succeeded_total bigint not null default 0,
    dead_total bigint not null default 0,
    cancelled_total bigint not null default 0,
    retried_total bigint not null default 0,
    rescued_total bigint not null default 0,
    constraint windlass_count_pkey PRIMARY KEY (minute, queue, kind)
) with (fillfactor=70);

create table windlass_delivery (
    seq bigint not null,
    delivery integer not null,
    attempt integer not null,
    started_at timestamp with time zone not null,
    ended_at timestamp with time zone not null,
    worker text,
    outcome text not null,
    message text,
    type text,
    traceback text,
    module text,
    retried_at timestamp with time zone,
    constraint windlass_delivery_pkey PRIMARY KEY (seq, delivery)
);

create table windlass_delta (
    id bigint generated always as identity not null,
    minute timestamp with time zone not null,
    queue text not null,
    kind text not null,
    scheduled bigint not null default 0,
    pending bigint not null default 0,
    running bigint not null default 0,
    succeeded bigint not null default 0,
    dead bigint not null default 0,
    cancelled bigint not null default 0,
    enqueued_total bigint not null default 0,
    succeeded_total bigint not null default 0,
    dead_total bigint not null default 0,
    cancelled_total bigint not null default 0,
    retried_total bigint not null default 0,
    rescued_total bigint not null default 0,
    constraint windlass_delta_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

create table windlass_gate (
    nothing integer
);

create table windlass_hold (
    name text not null,
    job_id uuid not null,
    expires_at timestamp with time zone,
    digest bytea not null,
    constraint windlass_hold_pkey PRIMARY KEY (name)
);
CREATE INDEX windlass_hold_expiry ON windlass_hold USING btree (expires_at) WHERE expires_at IS NOT NULL;

create table windlass_job (
    seq bigint generated always as identity not null,
    id uuid not null,
    queue text not null,
    kind text,
    payload bytea not null,
    codec text not null,
    headers text,
    tenant text,
    priority integer not null,
    state text not null,
    attempt integer not null default 0,
    max_attempts integer not null,
    delivery integer not null default 0,
    created_at timestamp with time zone not null,
    run_at timestamp with time zone not null,
    claimed_at timestamp with time zone,
    lease_expires_at timestamp with time zone,
    finished_at timestamp with time zone,
    worker text,
    last_error text,
    result bytea,
    result_codec text,
    progress text,
    cancel_requested boolean not null default false,
    unique_key text,
    parent_id uuid,
    schedule_id text,
    limit_key text,
    token uuid,
    hold text,
    hold_until text,
    log_lines integer not null default 0,
    has_followers boolean not null default false,
    constraint windlass_job_id_key UNIQUE (id),
    constraint windlass_job_pkey PRIMARY KEY (seq)
) with (autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.1, autovacuum_vacuum_cost_delay=0);
CREATE INDEX windlass_dead ON windlass_job USING btree (queue, seq) WHERE state = 'dead'::text;
CREATE INDEX windlass_due ON windlass_job USING btree (queue, run_at, seq) WHERE state = 'scheduled'::text;
CREATE INDEX windlass_finished ON windlass_job USING btree (queue, state, finished_at, seq) WHERE finished_at IS NOT NULL;
CREATE INDEX windlass_leased ON windlass_job USING btree (lease_expires_at, seq) WHERE state = 'running'::text;
CREATE INDEX windlass_of_error ON windlass_job USING btree (split_part("left"(last_error, 80), ':'::text, 1), seq) WHERE last_error IS NOT NULL;
CREATE INDEX windlass_of_key ON windlass_job USING btree (unique_key, seq) WHERE unique_key IS NOT NULL;
CREATE INDEX windlass_of_kind ON windlass_job USING btree (kind, seq) WHERE kind IS NOT NULL AND (finished_at IS NOT NULL OR state = 'scheduled'::text);
CREATE INDEX windlass_of_parent ON windlass_job USING btree (parent_id, seq) WHERE parent_id IS NOT NULL;
CREATE INDEX windlass_of_tenant ON windlass_job USING btree (tenant, seq) WHERE tenant IS NOT NULL;
CREATE INDEX windlass_ready ON windlass_job USING btree (queue, priority, run_at, seq) WHERE state = 'pending'::text;
CREATE INDEX windlass_ready_kind ON windlass_job USING btree (queue, kind, priority, run_at, seq) WHERE state = 'pending'::text AND kind IS NOT NULL;

create table windlass_kv (
    key bytea not null,
    value bytea not null,
    constraint windlass_kv_pkey PRIMARY KEY (key)
);

create table windlass_lock (
    name text not null,
    holder text not null,
    expires_at timestamp with time zone not null,
    constraint windlass_lock_pkey PRIMARY KEY (name)
);

create table windlass_log (
    seq bigint not null,
    line integer not null,
    at timestamp with time zone not null,
    level text not null,
    text text not null,
    delivery integer not null,
    constraint windlass_log_pkey PRIMARY KEY (seq, line)
);

create table windlass_meta (
    name text not null,
    value text not null,
    constraint windlass_meta_pkey PRIMARY KEY (name)
);

create table windlass_parcel (
    move text not null,
    queue text not null,
    number bigint not null,
    ids uuid[] not null,
    constraint windlass_parcel_pkey PRIMARY KEY (move, queue)
);

create table windlass_queue (
    queue text not null,
    priorities integer[] not null default '{}'::integer[],
    marks timestamp with time zone[] not null default '{}'::timestamp with time zone[],
    due_mark timestamp with time zone,
    declared jsonb not null default '{}'::jsonb,
    override jsonb not null default '{}'::jsonb,
    revision bigint not null default 0,
    paused boolean not null generated always as (override @> '{"paused": true}'::jsonb OR declared @> '{"paused": true}'::jsonb AND NOT override @> '{"paused": false}'::jsonb) stored,
    constraint windlass_queue_pkey PRIMARY KEY (queue)
) with (fillfactor=50);

create table windlass_receipt (
    request_id text not null,
    at timestamp with time zone not null,
    reply text,
    constraint windlass_receipt_pkey PRIMARY KEY (request_id)
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);
CREATE INDEX windlass_receipt_age ON windlass_receipt USING btree (at);

create table windlass_schedule (
    id text not null,
    rule text not null,
    timezone text not null,
    queue text not null,
    kind text,
    codec text not null,
    headers text,
    tenant text,
    priority integer not null,
    max_attempts integer not null,
    catch_up text not null,
    overlap text not null,
    declared boolean not null,
    paused boolean not null,
    next_run_at timestamp with time zone,
    last_run_at timestamp with time zone,
    last_job_id uuid,
    revision bigint not null,
    payload bytea not null,
    constraint windlass_schedule_pkey PRIMARY KEY (id)
);
CREATE INDEX windlass_upcoming ON windlass_schedule USING btree (next_run_at, id) WHERE NOT declared AND NOT paused AND next_run_at IS NOT NULL;

create table windlass_server (
    id text not null,
    started_at timestamp with time zone not null,
    seen_at timestamp with time zone not null,
    record text not null,
    constraint windlass_server_pkey PRIMARY KEY (id)
);

create table windlass_timing (
    minute timestamp with time zone not null,
    queue text not null,
    kind text not null,
    what text not null,
    range integer not null,
    count bigint not null,
    constraint windlass_timing_pkey PRIMARY KEY (minute, queue, kind, what, range)
) with (fillfactor=70);

create sequence windlass_revision;
