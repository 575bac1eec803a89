insert into windlass_receipt (request_id, at, reply) values (?, ?, ?)
