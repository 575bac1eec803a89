-- the waiting ones of some jobs, whose ids are a JSON array
select seq, id, queue, state, hold from windlass_job
where id in (select value from json_each(?)) and state in ('scheduled', 'pending')
