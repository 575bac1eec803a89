-- as blobs: a text that is not UTF-8 stops nothing
select queue, paused, cast(declared as blob), cast(override as blob), revision
from windlass_count left join windlass_queue using (queue)
where minute = 9223372036854775807 and queue in (select value from json_each(:queues)) and kind = ''
