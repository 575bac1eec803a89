-- What a move needs to know of jobs, which no other move can change until the transaction ends. In the order of their ids:
-- whoever waits for many jobs takes them in this order, so that no two wait for each other. It is that of the index by
-- which ack.sql finds its jobs, which would have to sort them for any other. A transaction that has fenced a job is not
-- waited for, see fence.sql. With :lock_timeout nothing is waited for longer than so many milliseconds, until the
-- transaction ends.
select
    {standing_columns}
from windlass_job
where id = any(:ids::uuid[])
    -- before any row is locked
    and (
        select case when :lock_timeout::text is not null then set_config('lock_timeout', :lock_timeout::text, true) else '' end
    ) is not null
order by id
for no key update
