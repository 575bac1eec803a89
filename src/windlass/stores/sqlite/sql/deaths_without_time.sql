-- damaged: a dead job has the time of its death
select seq from windlass_job indexed by windlass_dead
where state = 'dead' and queue = :queue and finished_at is null and seq < :before
order by seq desc
limit :limit
