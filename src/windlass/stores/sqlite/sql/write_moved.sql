insert into windlass_moved (destination, move) values (?, ?)
