-- which process of the server works for this transaction, or this connection
select pid, backend_start from pg_stat_activity where pid = pg_backend_pid()
