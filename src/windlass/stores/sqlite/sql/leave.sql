delete from windlass_server where id = ?
