select paused from windlass_queue where name = ?
