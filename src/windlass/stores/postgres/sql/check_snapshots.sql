-- Who keeps rows that are gone from being removed, the one that does for longest: a session with a snapshot or a
-- transaction that has written, or a standby, of no database, that reports what it still reads. Without the right to see
-- them the kind of another role's session, and the start of its transaction, are null.
select
    pid, usename::text, application_name, state, backend_type, xact_start, clock_timestamp() - xact_start,
    greatest(age(backend_xmin), age(backend_xid))
from pg_stat_activity
where (backend_xmin is not null or backend_xid is not null)
    and (datname = current_database() or datname is null)
    and backend_type is distinct from 'autovacuum worker'
    and pid <> pg_backend_pid()
    and (xact_start is null or xact_start < clock_timestamp() - :age::interval)
order by greatest(age(backend_xmin), age(backend_xid)) desc
limit 1
