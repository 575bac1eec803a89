update windlass_hold set digest = :digest::bytea where name = :name::text
