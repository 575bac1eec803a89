update windlass_kv set value = $2::bytea where key = $1::bytea and value = $3::bytea returning 1
