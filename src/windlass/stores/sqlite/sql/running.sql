-- the running ones of some jobs, whose ids are a JSON array; the tokens are compared by whoever asks
select id, token, seq, queue, kind, delivery, log_lines, hold, hold_until
from windlass_job
where id in (select value from json_each(?)) and state = 'running'
