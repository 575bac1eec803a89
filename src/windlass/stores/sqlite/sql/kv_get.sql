select value from windlass_kv where key = :key
