select seq, delivery, log_lines from windlass_job indexed by windlass_finished
where queue = :queue and state = :state and finished_at <= :until
order by finished_at
limit :limit
