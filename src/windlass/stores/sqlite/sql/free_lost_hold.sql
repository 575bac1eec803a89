-- the holder's id may have been damaged since: then no job has the id that is kept here
delete from windlass_hold
where name = :name and expires_at is null and not exists (select 1 from windlass_job where id = windlass_hold.job_id)
