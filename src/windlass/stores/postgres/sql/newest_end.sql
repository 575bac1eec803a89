-- the number of the last record that newest.sql looks at, when there may be more behind it
select seq from windlass_job where seq < $1::bigint order by seq desc offset $2::integer - 1 limit 1
