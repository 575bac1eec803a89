insert into windlass_meta (name, value) values ($1::text, $2::text)
on conflict (name) do update set value = excluded.value
