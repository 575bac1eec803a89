-- the marks of a queue, by a clock that is read before anything else is looked at
select clock_timestamp(), priorities, marks, due_mark from windlass_queue where queue = :queue::text
