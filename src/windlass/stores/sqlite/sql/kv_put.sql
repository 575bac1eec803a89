insert into windlass_kv (key, value) values (?, ?) on conflict (key) do update set value = excluded.value
