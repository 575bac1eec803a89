select key, value from windlass_kv where key = any($1::bytea[])
