-- the queues whose claims begin at a mark
select queue from windlass_queue where cardinality(marks) > 0 or cardinality(priorities) > 0 or due_mark is not null order by queue
