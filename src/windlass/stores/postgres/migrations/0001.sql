-- Every table of Windlass begins with windlass_, so that it can live in a schema with an application's own tables.
-- Names are not qualified: the schema is that of the connection's search path.

create table windlass_meta (
    name  text primary key,
    value text not null
);

-- seq is the order of all enqueues. hold and hold_until remember which key the job asked for, also while it does not
-- hold it. Dead rows are looked for after one row in a hundred, not in five: a queue's rows live short.
create table windlass_job (
    seq              bigint generated always as identity primary key,
    id               uuid not null unique,
    queue            text not null,
    kind             text,
    payload          bytea not null,
    codec            text not null,
    headers          text,
    tenant           text,
    priority         integer not null,
    state            text not null,
    attempt          integer not null default 0,
    max_attempts     integer not null,
    delivery         integer not null default 0,
    created_at       timestamptz not null,
    run_at           timestamptz not null,
    claimed_at       timestamptz,
    lease_expires_at timestamptz,
    finished_at      timestamptz,
    worker           text,
    last_error       text,
    result           bytea,
    result_codec     text,
    progress         text,
    cancel_requested boolean not null default false,
    unique_key       text,
    parent_id        uuid,
    schedule_id      text,
    limit_key        text,
    token            uuid,
    hold             text,
    hold_until       text,
    log_lines        integer not null default 0
) with (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0
);

-- each index holds only the jobs that its reader looks for, so that its size is that of the work, not of the history
create index windlass_ready on windlass_job (queue, priority, run_at, seq) where state = 'pending';
create index windlass_ready_kind on windlass_job (queue, kind, priority, run_at, seq)
    where state = 'pending' and kind is not null;
create index windlass_due on windlass_job (queue, run_at, seq) where state = 'scheduled';
create index windlass_leased on windlass_job (lease_expires_at, seq) where state = 'running';
create index windlass_finished on windlass_job (queue, state, finished_at, seq) where finished_at is not null;
create index windlass_dead on windlass_job (queue, seq) where state = 'dead';

-- how deliveries ended, but for the one that runs and for a success: those are read off the job itself
create table windlass_delivery (
    seq        bigint not null,
    delivery   integer not null,
    attempt    integer not null,
    started_at timestamptz not null,
    ended_at   timestamptz not null,
    worker     text,
    outcome    text not null,
    message    text,
    type       text,
    traceback  text,
    primary key (seq, delivery)
);

create table windlass_log (
    seq      bigint not null,
    line     integer not null,
    at       timestamptz not null,
    level    text not null,
    text     text not null,
    delivery integer not null,
    primary key (seq, line)
);

-- who holds a unique key; expires_at is null when the job's own life frees it
create table windlass_hold (
    name       text primary key,
    job_id     uuid not null,
    expires_at timestamptz,
    digest     bytea not null
);
create index windlass_hold_expiry on windlass_hold (expires_at) where expires_at is not null;

-- What is known of a queue beside its jobs; a queue without a row is not paused and has no marks. A mark says: no job of
-- this priority (marks and priorities stand at the same place) waits before this time, so claims need not look there.
-- due_mark says the same of scheduled jobs. See docs/decisions/0013-marks.md before touching them.
create table windlass_queue (
    queue      text primary key,
    paused     boolean not null default false,
    priorities integer[] not null default '{}',
    marks      timestamptz[] not null default '{}',
    due_mark   timestamptz
) with (fillfactor = 50);

-- claims hold a lock on this empty table while they run, so that a pause can wait for those under way
create table windlass_gate (nothing integer);

-- What changed since the counts were last added up: one row per commit, queue and kind, so that no two commits wait for
-- each other. Each column is a difference; minute is when it happened.
create table windlass_delta (
    id              bigint generated always as identity primary key,
    minute          timestamptz not null,
    queue           text not null,
    kind            text not null,
    scheduled       bigint not null default 0,
    pending         bigint not null default 0,
    running         bigint not null default 0,
    succeeded       bigint not null default 0,
    dead            bigint not null default 0,
    cancelled       bigint not null default 0,
    enqueued_total  bigint not null default 0,
    succeeded_total bigint not null default 0,
    dead_total      bigint not null default 0,
    cancelled_total bigint not null default 0,
    retried_total   bigint not null default 0,
    rescued_total   bigint not null default 0
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What was counted in each minute, by queue and kind, and, as the minute that never ends, over a queue's whole life: only
-- that row (kind is empty there) knows what the queue holds. What is true now is this plus windlass_delta.
create table windlass_count (
    minute          timestamptz not null,
    queue           text not null,
    kind            text not null,
    scheduled       bigint not null default 0,
    pending         bigint not null default 0,
    running         bigint not null default 0,
    succeeded       bigint not null default 0,
    dead            bigint not null default 0,
    cancelled       bigint not null default 0,
    enqueued_total  bigint not null default 0,
    succeeded_total bigint not null default 0,
    dead_total      bigint not null default 0,
    cancelled_total bigint not null default 0,
    retried_total   bigint not null default 0,
    rescued_total   bigint not null default 0,
    primary key (minute, queue, kind)
) with (fillfactor = 70);

create table windlass_kv (
    key   bytea primary key,
    value bytea not null
);

create table windlass_lock (
    name       text primary key,
    holder     text not null,
    expires_at timestamptz not null
);

-- a call that was done, for a caller whose reply was lost: a second one with the same name is refused by the key
create table windlass_receipt (
    request_id text primary key,
    at         timestamptz not null,
    reply      text
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index windlass_receipt_age on windlass_receipt (at);

create table windlass_server (
    id         text primary key,
    started_at timestamptz not null,
    seen_at    timestamptz not null,
    record     text not null
);

create table windlass_audit (
    entry  bigint generated always as identity primary key,
    at     timestamptz not null,
    actor  text not null,
    action text not null,
    target text not null,
    detail text not null
);

-- a rule and the job that it makes
create table windlass_schedule (
    id           text primary key,
    rule         text not null,
    timezone     text not null,
    queue        text not null,
    kind         text,
    codec        text not null,
    headers      text,
    tenant       text,
    priority     integer not null,
    max_attempts integer not null,
    catch_up     text not null,
    overlap      text not null,
    declared     boolean not null,
    paused       boolean not null,
    next_run_at  timestamptz,
    last_run_at  timestamptz,
    last_job_id  uuid,
    revision     bigint not null,
    payload      bytea not null
);

-- those that code declares are not in it: whoever looks for them has their ids, and they are few
create index windlass_upcoming on windlass_schedule (next_run_at, id)
    where not declared and not paused and next_run_at is not null;

-- one counter for all schedules: one that was removed and put again has a revision that nobody has seen
create sequence windlass_revision;

-- tells this store from every other one, whatever its database is called
insert into windlass_meta (name, value) values ('store', gen_random_uuid()::text);
