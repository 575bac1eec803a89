select queue from windlass_queue where queue = any(:queues::text[]) and paused
