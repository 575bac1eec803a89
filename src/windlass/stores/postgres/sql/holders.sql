-- who holds these keys; nothing is locked, so that a hit in a long transaction stands in nobody's way
select
    name, job_id::text,
    -- a damaged time is given as one that every driver can read
    case when expires_at is not null then least(expires_at, '9999-12-30 00:00:00+00') end, digest
from windlass_hold
where name = any(:names::text[])
    and (expires_at is null or expires_at > coalesce(:now::timestamptz, clock_timestamp()))
