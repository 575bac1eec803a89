select minute, queue, kind, what, range, count from windlass_timing
where minute >= ? and minute < ?
order by minute, queue, kind, what, range
