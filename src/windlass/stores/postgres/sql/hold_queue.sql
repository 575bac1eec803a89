select priorities, marks, due_mark from windlass_queue where queue = :queue::text for update
