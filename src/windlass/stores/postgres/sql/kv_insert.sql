insert into windlass_kv (key, value) values (:key::bytea, :value::bytea)
on conflict (key) do nothing
returning 1
