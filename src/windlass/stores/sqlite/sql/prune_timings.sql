delete from windlass_timing where minute < :until
