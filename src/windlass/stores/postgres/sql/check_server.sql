select
    current_setting('server_version_num')::integer / 10000,
    current_setting('server_version'),
    current_setting('fsync') = 'on',
    current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names') <> '',
    current_setting('autovacuum') = 'on',
    pg_is_in_recovery(),
    -- of another role's session the kind is hidden, but not that it is in a database
    (
        select count(*)
        from pg_stat_activity
        where backend_type = 'client backend' or backend_type is null and usesysid is not null and datid is not null
    )::integer,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
    pg_notification_queue_usage()
