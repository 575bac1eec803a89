-- whether a process of the server is still at its statement; where it may not tell, it is taken to be
select exists (
    select from pg_stat_activity
    where pid = $1::integer and backend_start = $2::timestamptz and coalesce(state, '') not like 'idle%'
)
