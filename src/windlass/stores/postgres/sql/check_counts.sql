-- no further than it matters
select count(*) from (select from windlass_delta limit $1::integer) as changed
