delete from windlass_server where seen_at < :until
