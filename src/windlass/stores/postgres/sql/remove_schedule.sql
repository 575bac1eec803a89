delete from windlass_schedule where id = $1::text returning id
