update windlass_kv set value = :value::bytea where key = :key::bytea and value = :expected::bytea returning 1
