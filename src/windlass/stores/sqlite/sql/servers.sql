select seen_at, record from windlass_server order by id
