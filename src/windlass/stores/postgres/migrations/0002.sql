-- how many attempts of a minute, queue and kind took as long as a range of core/stats.py: what they ran, or had waited
create table windlass_timing (
    minute timestamptz not null,
    queue  text not null,
    kind   text not null,
    what   text not null,
    range  integer not null,
    count  bigint not null,
    primary key (minute, queue, kind, what, range)
) with (fillfactor = 70);

-- the last parcel of each move and queue that was unpacked here, and the jobs that were in it
create table windlass_parcel (
    move   text not null,
    queue  text not null,
    number bigint not null,
    ids    uuid[] not null,
    primary key (move, queue)
);

-- Where the jobs of this store went, as JSON; empty while it takes jobs. The row is always there: a transaction that sees
-- one moment alone can lock it, which fails when it has changed since then.
insert into windlass_meta (name, value) values ('moved', '');
