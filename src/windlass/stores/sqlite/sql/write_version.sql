insert into windlass_meta (name, value) values ('schema', :version) on conflict (name) do update set value = :version
