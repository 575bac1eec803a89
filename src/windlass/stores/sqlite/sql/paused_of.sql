select queue from windlass_count
where minute = 9223372036854775807 and queue in (select value from json_each(:queues)) and kind = '' and paused
