select seq from windlass_job
where seq in (select value from json_each(:seqs)) and state in ('scheduled', 'pending')
order by seq
