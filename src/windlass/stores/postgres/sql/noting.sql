-- The running jobs of some claims, to write notes to; found as in renew.sql. A job that somebody has locked is told as one
-- that is not free: the notes of all others, and the settlements that wait for those, are not held up by it.
with free as materialized (
    select seq, id, token, delivery, log_lines
    from windlass_job
    where id = any(:ids::uuid[]) and token = any(:tokens::uuid[]) and lease_expires_at is not null
    order by id
    for no key update skip locked
)
select seq, id::text, token::text, delivery, 
    -- as in note.sql
    case when log_lines > 2147400000 then 2147000000 else greatest(log_lines, 0) end, true from free
union all
select seq, id::text, token::text, delivery, log_lines, false
from windlass_job
where id = any(:ids::uuid[]) and token = any(:tokens::uuid[]) and lease_expires_at is not null
