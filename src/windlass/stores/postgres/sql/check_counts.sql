-- no further than it matters
select count(*) from (select from windlass_delta limit :limit::integer) as changed
