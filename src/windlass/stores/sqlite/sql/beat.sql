insert into windlass_server (id, seen_at, record) values (:server_id, :now, :record)
on conflict (id) do update set seen_at = excluded.seen_at, record = excluded.record
