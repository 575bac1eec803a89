insert into windlass_kv (key, value) values ($1::bytea, $2::bytea)
on conflict (key) do nothing
returning 1
