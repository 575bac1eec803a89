update windlass_job set cancel_requested = 1 where seq = :seq
