-- the first job of a priority that waits at or after a time, and before another; one that is just being claimed counts
select run_at
from windlass_job
where state = 'pending' and queue = $1::text and priority = $2::integer
    and run_at >= $3::timestamptz and run_at < $4::timestamptz
order by run_at, seq
limit 1
