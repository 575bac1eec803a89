delete from windlass_delivery where seq = $1::bigint and delivery <= $2::integer
