select id, seq, queue, kind, tenant from windlass_job where id in (select value from json_each(:ids))
