-- as migration_turn, until the connection ends or is reset
select pg_try_advisory_lock(hashtextextended('windlass migrate ' || coalesce(:schema::text, current_schema(), ''), 0))
