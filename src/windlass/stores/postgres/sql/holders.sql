-- who holds these keys; nothing is locked, so that a hit in a long transaction stands in nobody's way
select name, job_id::text, expires_at, digest
from windlass_hold
where name = any($2::text[])
    and (expires_at is null or expires_at > coalesce($1::timestamptz, clock_timestamp()))
