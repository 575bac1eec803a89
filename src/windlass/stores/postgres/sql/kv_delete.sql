delete from windlass_kv where key = $1::bytea
