delete from windlass_count where minute < :until
