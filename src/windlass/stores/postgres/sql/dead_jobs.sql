-- The most looked at list has an index of its own. Its two columns are compared as one place, so that no other index
-- can be taken for it: by their numbers alone all jobs would be looked at for a few dead ones.
select {job_columns}
from windlass_job
where state = 'dead' and (queue, seq) > ($1::text, $2::bigint) and queue <= $1::text
order by queue, seq
limit $3::integer
