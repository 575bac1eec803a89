select
    queue, paused, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
    cancelled_total, retried_total, rescued_total
from windlass_count
where minute = 9223372036854775807 and queue != '' and (:queue is null or queue = :queue)
order by queue
