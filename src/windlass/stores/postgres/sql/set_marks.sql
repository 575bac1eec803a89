update windlass_queue
set priorities = :priorities::integer[], marks = :marks::timestamptz[], due_mark = :due_mark::timestamptz
where queue = :queue::text
