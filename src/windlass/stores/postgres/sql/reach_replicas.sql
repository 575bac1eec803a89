-- Writes to the log and changes nothing: the commit waits for the replicas that commits wait for, and so for all that was
-- written before.
select pg_logical_emit_message(true, 'windlass', '')
