insert into windlass_log (seq, line, at, level, text, delivery)
select * from unnest($1::bigint[], $2::integer[], $3::timestamptz[], $4::text[], $5::text[], $6::integer[])
