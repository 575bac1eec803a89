-- the settings of those of some queues that have any
select queue, declared::text, override::text, revision
from windlass_queue
where queue = any(:queues::text[]) and (declared <> '{}' or override <> '{}')
