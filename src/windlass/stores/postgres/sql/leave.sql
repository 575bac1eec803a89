delete from windlass_server where id = $1::text
