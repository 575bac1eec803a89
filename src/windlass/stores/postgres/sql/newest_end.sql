-- the number of the last record that newest.sql looks at, when there may be more behind it
select seq from windlass_job where seq < :before::bigint order by seq desc offset :most::integer - 1 limit 1
