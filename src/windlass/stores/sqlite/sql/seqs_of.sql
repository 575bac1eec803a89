select id, seq from windlass_job where id in (select value from json_each(?))
