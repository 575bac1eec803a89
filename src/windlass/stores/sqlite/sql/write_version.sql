insert into windlass_meta (name, value) values ('schema', :number) on conflict (name) do update set value = :number
