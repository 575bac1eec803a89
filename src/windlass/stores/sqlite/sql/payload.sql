select payload from windlass_job where seq = :seq
