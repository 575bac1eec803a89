-- A transaction of ours that its user works in: without our limits, and planned as usual. The user's own tables are found
-- where they are by default, behind ours.
select
    set_config('search_path', coalesce($1::text || ', "$user", public', current_setting('search_path')), true),
    set_config('statement_timeout', '0', true),
    set_config('lock_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', $2::text, true),
    set_config('enable_seqscan', 'on', true),
    set_config('enable_bitmapscan', 'on', true),
    set_config('timezone', 'UTC', true)
