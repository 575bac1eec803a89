delete from windlass_lock where name = ? and holder = ?
returning expires_at
