select started_at, seen_at, record from windlass_server order by id collate "C"
