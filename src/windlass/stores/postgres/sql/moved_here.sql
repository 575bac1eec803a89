-- As moved.sql, in a caller's own transaction: one that sees one moment alone does not see what was written since. Then
-- this fails, and the caller begins anew.
with latest as materialized (
    select value
    from windlass_meta
    where name = 'moved' and current_setting('transaction_isolation') in ('repeatable read', 'serializable')
    for share
)
select value from windlass_meta where name = 'moved' and coalesce((select latest.value from latest), value) <> ''
