update windlass_job set state = 'cancelled', finished_at = :now where seq = :seq
