-- keys that seemed free: whoever comes second waits for the first to end, and finds the key taken then or free after all
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
insert into windlass_hold (name, job_id, expires_at, digest)
-- in UTC, where a day has 24 hours
select
    wanted.name, wanted.job_id,
    coalesce(wanted.expires_at, (moment.now at time zone 'UTC' + wanted.hold_for) at time zone 'UTC'), wanted.digest
from moment, unnest(:names::text[], :job_ids::uuid[], :hold_fors::interval[], :expires_ats::timestamptz[], :digests::bytea[])
    as wanted (name, job_id, hold_for, expires_at, digest)
-- in one order, so that two batches never wait for each other
order by wanted.name
-- not "do update", which would lock the row of another's key until this transaction ends
on conflict (name) do nothing
returning name, job_id::text, expires_at, digest
