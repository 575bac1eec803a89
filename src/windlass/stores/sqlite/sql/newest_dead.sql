select seq from windlass_job indexed by windlass_dead
where state = 'dead' and queue = :queue and seq < :before
order by seq desc
limit :limit
