insert into windlass_log (seq, line, at, level, text, delivery) values (?, ?, ?, ?, ?, ?)
