-- the most looked at list has an index of its own
select {job_columns}
from windlass_job indexed by windlass_dead
where state = 'dead' and queue = :queue and seq > :after
order by seq
limit :limit
