delete from windlass_schedule where id = :id::text returning id
