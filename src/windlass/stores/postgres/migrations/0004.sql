-- The tables in the order in which claims and settlements lock them.
--
-- Settings of a queue: what code declares, what an operator has set over it, and the number of changes. A pause was all
-- that there was. `paused` follows from them: a value that is damaged counts as not set. Claims read it, also those of a
-- process that was started before this migration; what such a process cannot do any more is to pause a queue.
alter table windlass_queue
    add column declared jsonb not null default '{}',
    add column override jsonb not null default '{}',
    add column revision bigint not null default 0;
update windlass_queue set override = '{"paused": true}', revision = 1 where paused;
alter table windlass_queue drop column paused;
alter table windlass_queue add column paused boolean not null generated always as (
    override @> '{"paused": true}' or declared @> '{"paused": true}' and not override @> '{"paused": false}'
) stored;

-- whether other jobs wait for the end of this one
alter table windlass_job add column has_followers boolean not null default false;

-- where the class of a failure is defined, and when an operator retried the job after this delivery
alter table windlass_delivery add column module text, add column retried_at timestamptz;
