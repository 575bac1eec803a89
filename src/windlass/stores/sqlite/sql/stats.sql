select
    name, paused, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
    cancelled_total, retried_total, rescued_total
from windlass_queue
where :queue is null or name = :queue
order by name
