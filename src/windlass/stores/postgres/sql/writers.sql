-- the transactions under way that have written jobs, or may have; a prepared one has no process
select virtualtransaction
from pg_locks
where locktype = 'relation'
    and database = (select oid from pg_database where datname = current_database())
    and relation = 'windlass_job'::regclass
    and mode = 'RowExclusiveLock'
    and granted
    and pid is distinct from pg_backend_pid()
