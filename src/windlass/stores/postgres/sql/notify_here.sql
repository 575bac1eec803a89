-- sent by Postgres when the caller's transaction commits
select pg_notify(:channel::text, :message::text)
