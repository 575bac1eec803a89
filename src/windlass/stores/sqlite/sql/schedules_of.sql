select {schedule_columns}
from windlass_schedule
where id in (select value from json_each(:ids))
order by id
