-- those of some sequence numbers, a JSON array, whose jobs are here and wait
select seq from windlass_job
where seq in (select value from json_each(?)) and state in ('scheduled', 'pending')
order by seq
