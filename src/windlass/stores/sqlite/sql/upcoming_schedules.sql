-- the first to be due of those that no code declares
select next_run_at, id
from windlass_schedule
where declared = 0 and paused = 0 and next_run_at is not null
order by next_run_at, id
limit :limit
