-- whoever holds a lock on one of our tables, the oldest transaction first: that is who a migration waits for
select distinct a.pid, coalesce(a.usename, '')::text, coalesce(a.application_name, ''), a.state, a.xact_start
from pg_locks l
join pg_class c on c.oid = l.relation
join pg_stat_activity a on a.pid = l.pid
where l.granted and l.locktype = 'relation' and l.database = (select oid from pg_database where datname = current_database())
    and c.relname like 'windlass\_%' and a.pid <> pg_backend_pid()
order by a.xact_start nulls last
limit 3
