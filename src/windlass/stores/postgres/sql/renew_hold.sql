update windlass_hold set digest = $2::bytea where name = $1::text
