select id, state, cancel_requested, token from windlass_job where id in (select value from json_each(:ids))
