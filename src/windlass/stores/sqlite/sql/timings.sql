select minute, queue, kind, what, range, count from windlass_timing
where minute >= :since and minute < :until
order by minute, queue, kind, what, range
