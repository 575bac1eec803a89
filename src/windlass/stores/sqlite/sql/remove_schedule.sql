delete from windlass_schedule where id = :schedule_id
