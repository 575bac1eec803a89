delete from windlass_job where seq = :seq
