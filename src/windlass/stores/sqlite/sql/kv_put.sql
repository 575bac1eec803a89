insert into windlass_kv (key, value) values (:key, :value) on conflict (key) do update set value = excluded.value
