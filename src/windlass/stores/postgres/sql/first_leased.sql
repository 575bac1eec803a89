-- the first lease that ends at or after a time, and before another: of those that end later most are settled by now
select lease_expires_at
from windlass_job
where state = 'running' and lease_expires_at >= :mark::timestamptz and lease_expires_at < :before::timestamptz
order by lease_expires_at, seq
limit 1
