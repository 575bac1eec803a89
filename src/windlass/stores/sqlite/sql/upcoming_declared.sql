-- found by id: other apps may declare many more schedules
select next_run_at, id
from windlass_schedule
where id in (select value from json_each(:ids)) and declared = 1 and paused = 0 and next_run_at is not null
order by next_run_at, id
limit :limit
