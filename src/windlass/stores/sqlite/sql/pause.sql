insert into windlass_queue (name, paused) values (?, ?)
on conflict (name) do update set paused = excluded.paused
