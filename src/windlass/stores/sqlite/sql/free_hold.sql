delete from windlass_hold where name = :name and job_id = :job_id
