-- the first to be due of those that code declares, among some ids, a JSON array: found by id, since the others are many
select next_run_at, id
from windlass_schedule
where id in (select value from json_each(:ids)) and declared = 1 and paused = 0 and next_run_at is not null
order by next_run_at, id
limit :limit
