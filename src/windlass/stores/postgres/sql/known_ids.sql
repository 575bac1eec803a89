select id::text, queue, kind, tenant from windlass_job where id = any(:ids::uuid[])
