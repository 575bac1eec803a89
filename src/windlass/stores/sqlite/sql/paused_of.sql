-- those of some queues, a JSON array, that are paused
select queue from windlass_count
where minute = 9223372036854775807 and queue in (select value from json_each(?)) and kind = '' and paused
