-- where the class of a failure is defined, and when an operator retried the job after this delivery
alter table windlass_delivery add column module text;
alter table windlass_delivery add column retried_at integer;

-- whether other jobs wait for the end of this one
alter table windlass_job add column has_followers integer not null default 0;

-- The settings of a queue: what code declares, and over it what an operator has set, each a JSON object or empty. Whether
-- they pause the queue is in `paused` of `windlass_count` too: claims read that, and processes of earlier code read and
-- write it alone.
create table windlass_queue (
    queue    text primary key,
    declared text not null,
    override text not null,
    revision integer not null
) strict, without rowid;
