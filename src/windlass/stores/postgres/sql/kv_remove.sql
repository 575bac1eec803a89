delete from windlass_kv where key = :key::bytea and value = :expected::bytea returning 1
