-- in the transaction that has compared the tokens; a job that others follow is left to `finish.sql`
update windlass_job
set state = 'succeeded', finished_at = :now, lease_expires_at = null
where seq in (select value from json_each(:seqs)) and has_followers = 0
