-- news may be lost, since polling finds what it told of: its commit does not wait for the disk
select set_config('synchronous_commit', 'off', true), pg_notify(:channel::text, :message::text)
