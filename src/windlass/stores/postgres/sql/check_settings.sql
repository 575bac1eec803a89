-- the settings of all queues that have any
select queue, declared::text, override::text, revision
from windlass_queue
where declared <> '{}' or override <> '{}'
order by queue
