delete from windlass_log where seq = :seq
