select id::text from windlass_job where id = any($1::uuid[])
