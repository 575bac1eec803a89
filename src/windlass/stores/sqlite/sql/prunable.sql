select seq, delivery, log_lines from windlass_job indexed by windlass_finished
where queue = ? and state = ? and finished_at <= ?
order by finished_at
limit ?
