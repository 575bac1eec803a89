delete from windlass_delivery where seq = :seq and delivery <= :last
