-- in the transaction that has compared the tokens; a job that others follow is left to `forget.sql`
delete from windlass_job where seq in (select value from json_each(:seqs)) and has_followers = 0
