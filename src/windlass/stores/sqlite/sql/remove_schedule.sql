delete from windlass_schedule where id = ?
