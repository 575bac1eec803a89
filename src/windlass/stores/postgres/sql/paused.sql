select queue from windlass_queue where queue = any($1::text[]) and paused
