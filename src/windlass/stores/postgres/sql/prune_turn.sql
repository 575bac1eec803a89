-- one pruner at a time, by its own transaction: two that count the same records would delete too many
select pg_try_advisory_xact_lock(1466524773, 'windlass_job'::regclass::oid::integer)
