select priorities, marks, due_mark from windlass_queue where queue = $1::text for update
