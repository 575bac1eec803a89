insert into windlass_queue (queue, paused) values ($1::text, $2::boolean)
on conflict (queue) do update set paused = excluded.paused
