select key, value from windlass_kv where key = any(:keys::bytea[])
