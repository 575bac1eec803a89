delete from windlass_kv where key = $1::bytea and value = $2::bytea returning 1
