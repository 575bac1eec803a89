-- from the first line on that may still be there: those before it are gone, and are not stepped over again
delete from windlass_log where seq = $1::bigint and line > $2::integer and line <= $3::integer
