select seq from windlass_job indexed by windlass_ready
where state = 'pending' and queue = :queue and seq < :before
order by seq desc
limit :limit
