-- sent by Postgres when the caller's transaction commits
select pg_notify($1::text, $2::text)
