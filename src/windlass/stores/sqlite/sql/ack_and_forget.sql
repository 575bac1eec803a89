-- in the transaction that has compared the tokens
delete from windlass_job where seq in (select value from json_each(:seqs))
