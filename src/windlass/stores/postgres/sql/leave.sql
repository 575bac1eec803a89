delete from windlass_server where id = :server_id::text
