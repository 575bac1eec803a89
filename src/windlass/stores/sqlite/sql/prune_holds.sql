delete from windlass_hold where expires_at is not null and expires_at <= :now
