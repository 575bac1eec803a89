-- A rule and the job that it makes. The payload stands last: what a firing changes lies on one page, however long it is.
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
    declared     integer not null,
    paused       integer not null,
    next_run_at  integer,
    last_run_at  integer,
    last_job_id  text,
    revision     integer not null,
    payload      blob not null
) strict;

-- those that code declares are not in it: whoever looks for them has their ids, and they are few
create index windlass_upcoming on windlass_schedule (next_run_at, id)
    where declared = 0 and paused = 0 and next_run_at is not null;

-- one counter for all schedules: one that was removed and put again has a revision that nobody has seen
insert into windlass_meta (name, value) values ('schedule_revision', 0);
