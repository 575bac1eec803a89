update windlass_job
set progress = coalesce(:progress, progress), log_lines = log_lines + :lines
where id = :id and token = :token and state = 'running'
returning seq, delivery, log_lines
