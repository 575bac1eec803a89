-- What all migrations make, in one piece: to be read, not to be run.

CREATE TABLE windlass_audit (
    entry  integer primary key,
    at     integer not null,
    actor  text not null,
    action text not null,
    target text not null,
    detail text not null
) strict;

CREATE TABLE windlass_count (
    minute          integer not null,
    queue           text not null,
    kind            text not null,
    paused          integer not null default 0,
    scheduled       integer not null default 0,
    pending         integer not null default 0,
    running         integer not null default 0,
    succeeded       integer not null default 0,
    dead            integer not null default 0,
    cancelled       integer not null default 0,
    enqueued_total  integer not null default 0,
    succeeded_total integer not null default 0,
    dead_total      integer not null default 0,
    cancelled_total integer not null default 0,
    retried_total   integer not null default 0,
    rescued_total   integer not null default 0,
    primary key (minute, queue, kind)
) strict, without rowid;

CREATE TABLE windlass_delivery (
    seq        integer not null,
    delivery   integer not null,
    attempt    integer not null,
    started_at integer not null,
    ended_at   integer not null,
    worker     text,
    outcome    text not null,
    message    text,
    type       text,
    traceback  text, module text, retried_at integer,
    primary key (seq, delivery)
) strict, without rowid;

CREATE TABLE windlass_hold (
    name       text primary key,
    job_id     text not null,
    expires_at integer,
    digest     blob not null
) strict, without rowid;

CREATE INDEX windlass_hold_expiry on windlass_hold (expires_at) where expires_at is not null;

CREATE TABLE windlass_job (
    seq              integer primary key,
    id               text not null unique,
    queue            text not null,
    kind             text,
    payload          blob not null,
    codec            text not null,
    headers          text,
    tenant           text,
    priority         integer not null,
    state            text not null,
    attempt          integer not null default 0,
    max_attempts     integer not null,
    delivery         integer not null default 0,
    created_at       integer not null,
    run_at           integer not null,
    claimed_at       integer,
    lease_expires_at integer,
    finished_at      integer,
    worker           text,
    last_error       text,
    result           blob,
    result_codec     text,
    progress         text,
    cancel_requested integer not null default 0,
    unique_key       text,
    parent_id        text,
    schedule_id      text,
    limit_key        text,
    token            text,
    hold             text,
    hold_until       text,
    log_lines        integer not null default 0
, has_followers integer not null default 0) strict;

CREATE INDEX windlass_dead on windlass_job (queue, seq) where state = 'dead';

CREATE INDEX windlass_due on windlass_job (queue, run_at, seq) where state = 'scheduled';

CREATE INDEX windlass_finished on windlass_job (queue, state, finished_at) where finished_at is not null;

CREATE INDEX windlass_leased on windlass_job (lease_expires_at) where lease_expires_at is not null;

CREATE INDEX windlass_of_error on windlass_job (
    substr(last_error, 1, instr(substr(last_error, 1, 80) || ':', ':') - 1), seq
) where last_error is not null;

CREATE INDEX windlass_of_key on windlass_job (unique_key, seq) where unique_key is not null;

CREATE INDEX windlass_of_kind on windlass_job (kind, seq) where kind is not null;

CREATE INDEX windlass_of_parent on windlass_job (parent_id, seq) where parent_id is not null;

CREATE INDEX windlass_of_tenant on windlass_job (tenant, seq) where tenant is not null;

CREATE INDEX windlass_ready on windlass_job (queue, priority, run_at, seq) where state = 'pending';

CREATE INDEX windlass_ready_kind on windlass_job (queue, kind, priority, run_at, seq)
    where kind is not null and state = 'pending';

CREATE TABLE windlass_kv (
    key   blob primary key,
    value blob not null
) strict;

CREATE TABLE windlass_lock (
    name       text primary key,
    holder     text not null,
    expires_at integer not null
) strict, without rowid;

CREATE TABLE windlass_log (
    seq      integer not null,
    line     integer not null,
    at       integer not null,
    level    text not null,
    text     text not null,
    delivery integer not null,
    primary key (seq, line)
) strict, without rowid;

CREATE TABLE windlass_meta (
    name  text primary key,
    value integer not null
) strict, without rowid;

CREATE TABLE windlass_moved (
    move        text primary key,
    destination text not null
) strict, without rowid;

CREATE TABLE windlass_parcel (
    move   text not null,
    queue  text not null,
    number integer not null,
    ids    text not null,
    primary key (move, queue)
) strict;

CREATE TABLE windlass_queue (
    queue    text primary key,
    declared text not null,
    override text not null,
    revision integer not null
) strict, without rowid;

CREATE TABLE windlass_receipt (
    request_id text primary key,
    at         integer not null,
    reply      text not null
) strict, without rowid;

CREATE TABLE windlass_schedule (
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
    declared     integer not null,
    paused       integer not null,
    next_run_at  integer,
    last_run_at  integer,
    last_job_id  text,
    revision     integer not null,
    payload      blob not null
) strict;

CREATE INDEX windlass_upcoming on windlass_schedule (next_run_at, id)
    where declared = 0 and paused = 0 and next_run_at is not null;

CREATE TABLE windlass_server (
    id      text primary key,
    seen_at integer not null,
    record  text not null
) strict, without rowid;

CREATE TABLE windlass_timing (
    minute integer not null,
    queue  text not null,
    kind   text not null,
    what   text not null,
    range  integer not null,
    count  integer not null,
    primary key (minute, queue, kind, what, range)
) strict, without rowid;
