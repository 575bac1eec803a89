select minute, queue, kind, enqueued, succeeded, dead, cancelled, retried, rescued
from windlass_minute
where minute >= ? and minute < ?
order by minute, queue, kind
