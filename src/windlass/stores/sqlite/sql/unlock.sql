delete from windlass_lock where name = :name and holder = :holder
returning expires_at
