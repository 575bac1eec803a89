-- from the first line on that may still be there: those before it are gone, and are not stepped over again
delete from windlass_log where seq = :seq::bigint and line > :after::integer and line <= :until::integer
