insert into windlass_receipt (request_id, at, reply) values (:request_id, :now, :reply)
