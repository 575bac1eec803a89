delete from windlass_kv where key = :key::bytea
