insert into windlass_meta (name, value) values ('lease_mark', $1::timestamptz::text)
on conflict (name) do update set value = excluded.value
