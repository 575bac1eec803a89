delete from windlass_delivery where seq = ? and delivery <= ?
