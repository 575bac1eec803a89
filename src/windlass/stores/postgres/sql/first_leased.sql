-- the first lease that ends at or after a time
select lease_expires_at
from windlass_job
where state = 'running' and lease_expires_at >= $1::timestamptz
order by lease_expires_at, seq
limit 1
