update windlass_job set unique_key = null where seq = :seq
