insert into windlass_kv (key, value) values (:key::bytea, :value::bytea)
on conflict (key) do update set value = excluded.value
