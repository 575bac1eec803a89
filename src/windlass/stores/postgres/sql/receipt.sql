select reply, at from windlass_receipt where request_id = :request_id::text
