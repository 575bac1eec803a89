-- Adds what changed since the last time to the counts. Whoever looks sees every change once: here or there.
-- One at a time, by its own transaction; $1 passes by what is gone, which an old snapshot may keep. With $3 its commit does
-- not wait for the disk: if it is lost, the changes are where they were.
with turn as materialized (
    select
        pg_try_advisory_xact_lock(1466524773, 'windlass_delta'::regclass::oid::integer) as taken,
        case when $3::boolean then set_config('synchronous_commit', 'off', true) end
),
folded as (
    delete from windlass_delta
    where id = any(array(
        select id
        from windlass_delta
        where (select taken from turn) and id > $1::bigint
        order by id
        limit $2::integer
    ))
    returning *
),
ever as (
    insert into windlass_count (
        minute, queue, kind, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total,
        dead_total, cancelled_total, retried_total, rescued_total
    )
    select
        'infinity', queue, '', sum(scheduled), sum(pending), sum(running), sum(succeeded), sum(dead), sum(cancelled),
        sum(enqueued_total), sum(succeeded_total), sum(dead_total), sum(cancelled_total), sum(retried_total),
        sum(rescued_total)
    from folded
    group by queue
    on conflict (minute, queue, kind) do update set
        scheduled = windlass_count.scheduled + excluded.scheduled,
        pending = windlass_count.pending + excluded.pending,
        running = windlass_count.running + excluded.running,
        succeeded = windlass_count.succeeded + excluded.succeeded,
        dead = windlass_count.dead + excluded.dead,
        cancelled = windlass_count.cancelled + excluded.cancelled,
        enqueued_total = windlass_count.enqueued_total + excluded.enqueued_total,
        succeeded_total = windlass_count.succeeded_total + excluded.succeeded_total,
        dead_total = windlass_count.dead_total + excluded.dead_total,
        cancelled_total = windlass_count.cancelled_total + excluded.cancelled_total,
        retried_total = windlass_count.retried_total + excluded.retried_total,
        rescued_total = windlass_count.rescued_total + excluded.rescued_total
),
-- claims count nothing that happened, only where jobs stand
minutes as (
    insert into windlass_count (
        minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
    )
    select
        minute, queue, kind, sum(enqueued_total), sum(succeeded_total), sum(dead_total), sum(cancelled_total),
        sum(retried_total), sum(rescued_total)
    from folded
    group by minute, queue, kind
    having sum(
        enqueued_total + succeeded_total + dead_total + cancelled_total + retried_total + rescued_total
    ) > 0
    on conflict (minute, queue, kind) do update set
        enqueued_total = windlass_count.enqueued_total + excluded.enqueued_total,
        succeeded_total = windlass_count.succeeded_total + excluded.succeeded_total,
        dead_total = windlass_count.dead_total + excluded.dead_total,
        cancelled_total = windlass_count.cancelled_total + excluded.cancelled_total,
        retried_total = windlass_count.retried_total + excluded.retried_total,
        rescued_total = windlass_count.rescued_total + excluded.rescued_total
)
select count(*), max(id) from folded
