insert into windlass_count (minute, queue, kind, paused) values (9223372036854775807, :queue, '', :paused)
on conflict (minute, queue, kind) do update set paused = excluded.paused
