delete from windlass_log where seq = ? and line <= ?
