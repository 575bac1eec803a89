-- the caller compares the tokens
select id, token, seq, queue, kind, delivery, log_lines, hold, hold_until
from windlass_job
where id in (select value from json_each(:ids)) and state = 'running'
