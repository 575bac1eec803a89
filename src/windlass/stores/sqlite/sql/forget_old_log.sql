delete from windlass_log where seq = :seq and line <= :last
