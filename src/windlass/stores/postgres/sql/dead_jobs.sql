-- The most looked at list has an index of its own. Its two columns are compared as one place, so that no other index
-- can be taken for it: by their numbers alone all jobs would be looked at for a few dead ones.
select {job_columns}
from windlass_job
where state = 'dead' and (queue, seq) > (:queue::text, :after::bigint) and queue <= :queue::text
order by queue, seq
limit :limit::integer
