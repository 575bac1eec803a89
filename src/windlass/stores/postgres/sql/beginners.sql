-- the transactions under way that have written, or may have, what a store that was moved takes no more, and whose they are;
-- one that is prepared has no process
select distinct
    locks.virtualtransaction, locks.pid, session.usename::text, session.application_name, session.state,
    session.xact_start
from pg_locks as locks
left join pg_stat_activity as session on session.pid = locks.pid
where locks.locktype = 'relation'
    and locks.database = (select oid from pg_database where datname = current_database())
    and locks.relation in (
        'windlass_job'::regclass, 'windlass_hold'::regclass, 'windlass_kv'::regclass, 'windlass_queue'::regclass,
        'windlass_schedule'::regclass
    )
    and locks.mode = 'RowExclusiveLock'
    and locks.granted
    and locks.pid is distinct from pg_backend_pid()
order by session.xact_start nulls last
