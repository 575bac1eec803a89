select queue, paused, {state_columns}, {total_columns}
from windlass_count
where minute = 9223372036854775807 and queue != '' and (:queue is null or queue = :queue)
order by queue
