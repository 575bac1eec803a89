-- Every table of Windlass begins with windlass_, so that it can live in an application's own file.
-- Times are microseconds since the epoch.

create table windlass_meta (
    name  text primary key,
    value integer not null
) strict, without rowid;

-- seq is given out by windlass_count and never used twice, so that it is the order of all enqueues.
-- hold and hold_until remember which key the job asked for, also while it does not hold it.
create table windlass_job (
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
) strict;

-- each index holds only the jobs that its reader looks for, so that its size is that of the work, not of the history;
-- its condition is tested at every write, so it is one comparison where that is possible
create index windlass_ready on windlass_job (queue, priority, run_at, seq) where state = 'pending';
create index windlass_ready_kind on windlass_job (queue, kind, priority, run_at, seq)
    where kind is not null and state = 'pending';
create index windlass_due on windlass_job (queue, run_at, seq) where state = 'scheduled';
create index windlass_leased on windlass_job (lease_expires_at) where lease_expires_at is not null;
create index windlass_finished on windlass_job (queue, state, finished_at) where finished_at is not null;
create index windlass_dead on windlass_job (queue, seq) where state = 'dead';

-- how deliveries ended, but for the one that runs and for a success: those are read off the job itself
create table windlass_delivery (
    seq        integer not null,
    delivery   integer not null,
    attempt    integer not null,
    started_at integer not null,
    ended_at   integer not null,
    worker     text,
    outcome    text not null,
    message    text,
    type       text,
    traceback  text,
    primary key (seq, delivery)
) strict, without rowid;

create table windlass_log (
    seq      integer not null,
    line     integer not null,
    at       integer not null,
    level    text not null,
    text     text not null,
    delivery integer not null,
    primary key (seq, line)
) strict, without rowid;

-- who holds a unique key; expires_at is null when the job's own life frees it
create table windlass_hold (
    name       text primary key,
    job_id     text not null,
    expires_at integer,
    digest     blob not null
) strict, without rowid;
create index windlass_hold_expiry on windlass_hold (expires_at) where expires_at is not null;

-- What was counted in each minute, by queue and kind, and, as the minute that never ends, over a queue's whole life; only
-- that row knows what the queue holds now and whether it is paused. The row of the empty name counts all enqueues of the
-- store: that is where sequence numbers come from. The hot rows lie side by side, so that a commit writes one page of them.
create table windlass_count (
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

create table windlass_kv (
    key   blob primary key,
    value blob not null
) strict;

create table windlass_lock (
    name       text primary key,
    holder     text not null,
    expires_at integer not null
) strict, without rowid;

-- the answer to a request, for a caller whose reply was lost
create table windlass_receipt (
    request_id text primary key,
    at         integer not null,
    reply      text not null
) strict, without rowid;

create table windlass_server (
    id      text primary key,
    seen_at integer not null,
    record  text not null
) strict, without rowid;

create table windlass_audit (
    entry  integer primary key,
    at     integer not null,
    actor  text not null,
    action text not null,
    target text not null,
    detail text not null
) strict;

insert into windlass_count (minute, queue, kind) values (9223372036854775807, '', '');
