-- the first scheduled job of a queue at or after a time, and before another
select run_at
from windlass_job
where state = 'scheduled' and queue = :queue::text and run_at >= :mark::timestamptz and run_at < :before::timestamptz
order by run_at, seq
limit 1
