select seq from windlass_job indexed by windlass_due
where state = 'scheduled' and queue = :queue and seq < :before
order by seq desc
limit :limit
