select at, level, text, delivery from windlass_log where seq = :seq order by line
