select seq, payload from windlass_job where seq = any($1::bigint[])
