update windlass_queue
set priorities = $2::integer[], marks = $3::timestamptz[], due_mark = $4::timestamptz
where queue = $1::text
