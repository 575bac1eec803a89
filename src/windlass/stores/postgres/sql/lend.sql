-- A transaction of ours that its user works in, on a connection that was opened for that: planned and limited as the user's
-- others are. The user's own tables are found where they are by default, behind ours.
select
    set_config('search_path', coalesce(:search_path::text || ', "$user", public', current_setting('search_path')), true),
    set_config('idle_in_transaction_session_timeout', :idle_timeout::text, true),
    set_config('timezone', 'UTC', true)
