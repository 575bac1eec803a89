delete from windlass_lock where expires_at <= :now
