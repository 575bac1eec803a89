select seq, id, queue, state, hold from windlass_job
where id in (select value from json_each(:ids)) and state in ('scheduled', 'pending')
