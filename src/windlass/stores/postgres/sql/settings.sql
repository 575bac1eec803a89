-- $5: for this transaction alone. Behind a pooler the next one may run on another connection. $6: for our own statements,
-- which are planned and limited in our way.
select
    set_config('search_path', coalesce($1::text, current_setting('search_path')), $5::boolean),
    set_config('idle_in_transaction_session_timeout', $4::text, $5::boolean),
    set_config('timezone', 'UTC', $5::boolean),
    case when $6::boolean then set_config('statement_timeout', $2::text, $5::boolean) end,
    case when $6::boolean then set_config('lock_timeout', $3::text, $5::boolean) end,
    case when $6::boolean then set_config('enable_seqscan', 'off', $5::boolean) end,
    case when $6::boolean then set_config('enable_bitmapscan', 'off', $5::boolean) end,
    case when $6::boolean then set_config('jit', 'off', $5::boolean) end,
    case when $6::boolean then set_config('plan_cache_mode', 'force_generic_plan', $5::boolean) end,
    case when $6::boolean then set_config('max_parallel_workers_per_gather', '0', $5::boolean) end
