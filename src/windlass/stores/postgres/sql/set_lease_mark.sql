-- in one format, whatever the server's own for dates is
insert into windlass_meta (name, value)
values ('lease_mark', to_char(:mark::timestamptz at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00'))
on conflict (name) do update set value = excluded.value
