select cast(last_error as blob) from windlass_job where seq = :seq
