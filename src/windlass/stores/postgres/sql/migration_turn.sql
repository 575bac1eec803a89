-- Until the transaction ends. Nobody waits here: a statement that waits has a snapshot, and an index that is built without
-- stopping others waits for old snapshots in turn.
select pg_try_advisory_xact_lock(hashtextextended('windlass migrate ' || coalesce(:schema::text, current_schema(), ''), 0))
