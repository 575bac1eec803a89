select at, level, text, delivery from windlass_log where seq = ? order by line
