select seq from windlass_job indexed by windlass_finished
where queue = :queue and state = :state and finished_at is not null and seq < :before
order by seq desc
limit :limit
