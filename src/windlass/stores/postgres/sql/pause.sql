insert into windlass_queue (queue, paused) values (:queue::text, :paused::boolean)
on conflict (queue) do update set paused = excluded.paused
