select reply, at from windlass_receipt where request_id = $1::text
