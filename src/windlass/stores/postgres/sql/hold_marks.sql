-- Whoever puts a job back to its old place keeps the marks of its queue as they are until it is done, but for lowering them.
-- The statement that deletes nothing takes the lock by which those who raise marks see all writers: it must be held
-- before this looks, since a queue may have no row yet. See docs/decisions/0013-marks.md.
with writer as (
    delete from windlass_job where false
),
-- A transaction that sees one moment alone does not see a row that is newer, with its marks: adding it then fails, and
-- the caller begins anew.
seen as (
    insert into windlass_queue (queue)
    select back.queue
    from unnest(:queues::text[]) as back (queue)
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
    order by back.queue
    on conflict (queue) do nothing
)
select cardinality(marks) + (due_mark is not null)::integer
from windlass_queue
where queue = any(:queues::text[])
order by queue
for update
