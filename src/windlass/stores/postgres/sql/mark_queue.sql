insert into windlass_queue (queue) values (:queue::text) on conflict (queue) do nothing
