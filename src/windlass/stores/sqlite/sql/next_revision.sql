update windlass_meta set value = value + 1 where name = 'schedule_revision' returning value
