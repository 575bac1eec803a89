-- those that keep rows or the write-ahead log for a reader
select
    slot_name::text, active, coalesce(age(xmin), 0),
    case
        when pg_is_in_recovery() then 0
        else coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)
    end::bigint
from pg_replication_slots
where xmin is not null or restart_lsn is not null
order by 4 desc, 1
