-- the first job of a priority that waits at or after a time, and before another; one that is just being claimed counts
select run_at
from windlass_job
where state = 'pending' and queue = :queue::text and priority = :priority::integer
    and run_at >= :mark::timestamptz and run_at < :before::timestamptz
order by run_at, seq
limit 1
