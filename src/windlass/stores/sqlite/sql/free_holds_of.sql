-- whatever the jobs themselves remember of their keys; those that only time frees stay. No index leads from a job to its key,
-- so this is done once for many
delete from windlass_hold
where expires_at is null
    and job_id in (select id from windlass_job where seq in (select value from json_each(:seqs)))
