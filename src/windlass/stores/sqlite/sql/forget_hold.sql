delete from windlass_hold where name = :name
