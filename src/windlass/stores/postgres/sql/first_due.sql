-- the first scheduled job of a queue at or after a time, and before another
select run_at
from windlass_job
where state = 'scheduled' and queue = $1::text and run_at >= $2::timestamptz and run_at < $3::timestamptz
order by run_at, seq
limit 1
