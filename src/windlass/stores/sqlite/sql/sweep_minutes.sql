delete from windlass_minute where minute < ?
