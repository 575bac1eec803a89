delete from windlass_delivery where seq = :seq::bigint and delivery <= :delivery::integer
