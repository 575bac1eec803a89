-- Where the jobs go, when this store is left: no row, or one. That it is left says `paused` in the row of `windlass_count`
-- that counts for the whole store, which every enqueue reads anyway.
create table windlass_moved (
    move        text primary key,
    destination text not null
) strict, without rowid;

-- The last parcel of each move and queue that came here; `ids` is a JSON array. It stays: whoever goes on with a move,
-- however late, must find it.
create table windlass_parcel (
    move   text not null,
    queue  text not null,
    number integer not null,
    ids    text not null,
    primary key (move, queue)
) strict;

create table windlass_timing (
    minute integer not null,
    queue  text not null,
    kind   text not null,
    what   text not null,
    range  integer not null,
    count  integer not null,
    primary key (minute, queue, kind, what, range)
) strict, without rowid;
