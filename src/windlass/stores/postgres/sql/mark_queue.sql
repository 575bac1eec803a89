insert into windlass_queue (queue) values ($1::text) on conflict (queue) do nothing
