-- whether a process of the server is still at its statement; where it may not tell, it is taken to be
select exists (
    select from pg_stat_activity
    where pid = :pid::integer and backend_start = :started_at::timestamptz and coalesce(state, '') not like 'idle%'
)
