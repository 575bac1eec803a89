select
    minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
from windlass_count
where minute >= ? and minute < ?
order by minute, queue, kind
