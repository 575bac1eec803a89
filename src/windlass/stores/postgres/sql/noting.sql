-- the running jobs of some claims, to write notes to; found as in renew.sql
select seq, id::text, token::text, delivery, log_lines
from windlass_job
where id = any($1::uuid[]) and token = any($2::uuid[]) and lease_expires_at is not null
order by id
for no key update
