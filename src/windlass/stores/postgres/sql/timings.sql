select minute, queue, kind, what, range, count
from windlass_timing
where minute >= $1::timestamptz and minute < $2::timestamptz
order by minute, queue collate "C", kind collate "C", what, range
