select {schedule_columns}
from windlass_schedule
order by id
