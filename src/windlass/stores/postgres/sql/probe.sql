-- Who answers here? A pooler hands on a connection of another process than the one that it greeted us with, or leaves
-- our settings out. A standby, and a role that may only read, say so too.
select
    pg_backend_pid(),
    coalesce(current_setting('windlass.ours', true), '') = 'yes',
    current_setting('transaction_read_only') = 'on'
