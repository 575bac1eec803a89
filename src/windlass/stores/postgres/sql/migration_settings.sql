-- For a change of the schema: it may take its time, but never keeps others waiting long for a lock; when its client is
-- gone it ends by itself, where the server can tell (Windows cannot). :local says whether this is for one transaction only.
select
    set_config(
        'search_path', coalesce(quote_ident(:schema::text) || ', pg_temp', current_setting('search_path')), :local::bool
    ),
    set_config('lock_timeout', :lock_timeout::text, :local::bool),
    set_config('statement_timeout', '0', :local::bool),
    set_config('idle_in_transaction_session_timeout', '60s', :local::bool),
    set_config(
        'client_connection_check_interval',
        case when version() ~* 'windows|mingw|msvc|visual' then '0' else '1s' end,
        :local::bool
    ),
    set_config('enable_seqscan', 'on', :local::bool),
    set_config('enable_bitmapscan', 'on', :local::bool)
