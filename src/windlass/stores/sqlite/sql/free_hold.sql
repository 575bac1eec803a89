delete from windlass_hold where name = ? and job_id = ?
