-- :local: for this transaction alone. Behind a pooler the next one may run on another connection. :planned: for our own
-- statements, which are planned and limited in our way.
select
    set_config('search_path', coalesce(:search_path::text, current_setting('search_path')), :local::boolean),
    set_config('idle_in_transaction_session_timeout', :idle_timeout::text, :local::boolean),
    set_config('timezone', 'UTC', :local::boolean),
    case when :planned::boolean then set_config('statement_timeout', :statement_timeout::text, :local::boolean) end,
    case when :planned::boolean then set_config('lock_timeout', :lock_timeout::text, :local::boolean) end,
    case when :planned::boolean then set_config('enable_seqscan', 'off', :local::boolean) end,
    case when :planned::boolean then set_config('enable_bitmapscan', 'off', :local::boolean) end,
    case when :planned::boolean then set_config('jit', 'off', :local::boolean) end,
    case when :planned::boolean then set_config('plan_cache_mode', 'force_generic_plan', :local::boolean) end,
    case when :planned::boolean then set_config('max_parallel_workers_per_gather', '0', :local::boolean) end
