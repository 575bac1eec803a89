insert into windlass_meta (name, value) values (:name::text, :value::text)
on conflict (name) do update set value = excluded.value
