-- Adds what changed since the last time to the counts, but for damaged changes, which stay: without them all is right
-- again. A damaged count cannot overflow. Whoever looks sees every change once: here or there. One at a time, by its own
-- transaction; :above passes by what is gone, which an old snapshot may keep. With :alone its commit does not wait for the
-- disk: if it is lost, the changes are where they were.
with turn as materialized (
    select
        pg_try_advisory_xact_lock(1466524773, 'windlass_delta'::regclass::oid::integer) as taken,
        case when :alone::boolean then set_config('synchronous_commit', 'off', true) end
),
chosen as materialized (
    select
        id,
        queue,
        -- no transaction changes so many jobs: such a change was damaged
        greatest(
            scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
            cancelled_total, retried_total, rescued_total
        ) > 2147483647 or least(
            scheduled, pending, running, succeeded, dead, cancelled, enqueued_total, succeeded_total, dead_total,
            cancelled_total, retried_total, rescued_total
        ) < -2147483647 as is_damaged
    from windlass_delta
    where (select taken from turn) and id > :above::bigint
    order by id
    limit :limit::integer
),
folded as (
    delete from windlass_delta
    where id = any(array(select id from chosen where not is_damaged))
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
        scheduled = least(greatest(windlass_count.scheduled, -4611686018427387904), 4611686018427387904) + excluded.scheduled,
        pending = least(greatest(windlass_count.pending, -4611686018427387904), 4611686018427387904) + excluded.pending,
        running = least(greatest(windlass_count.running, -4611686018427387904), 4611686018427387904) + excluded.running,
        succeeded = least(greatest(windlass_count.succeeded, -4611686018427387904), 4611686018427387904) + excluded.succeeded,
        dead = least(greatest(windlass_count.dead, -4611686018427387904), 4611686018427387904) + excluded.dead,
        cancelled = least(greatest(windlass_count.cancelled, -4611686018427387904), 4611686018427387904) + excluded.cancelled,
        enqueued_total = least(greatest(windlass_count.enqueued_total, -4611686018427387904), 4611686018427387904) + excluded.enqueued_total,
        succeeded_total = least(greatest(windlass_count.succeeded_total, -4611686018427387904), 4611686018427387904) + excluded.succeeded_total,
        dead_total = least(greatest(windlass_count.dead_total, -4611686018427387904), 4611686018427387904) + excluded.dead_total,
        cancelled_total = least(greatest(windlass_count.cancelled_total, -4611686018427387904), 4611686018427387904) + excluded.cancelled_total,
        retried_total = least(greatest(windlass_count.retried_total, -4611686018427387904), 4611686018427387904) + excluded.retried_total,
        rescued_total = least(greatest(windlass_count.rescued_total, -4611686018427387904), 4611686018427387904) + excluded.rescued_total
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
        enqueued_total = least(greatest(windlass_count.enqueued_total, -4611686018427387904), 4611686018427387904) + excluded.enqueued_total,
        succeeded_total = least(greatest(windlass_count.succeeded_total, -4611686018427387904), 4611686018427387904) + excluded.succeeded_total,
        dead_total = least(greatest(windlass_count.dead_total, -4611686018427387904), 4611686018427387904) + excluded.dead_total,
        cancelled_total = least(greatest(windlass_count.cancelled_total, -4611686018427387904), 4611686018427387904) + excluded.cancelled_total,
        retried_total = least(greatest(windlass_count.retried_total, -4611686018427387904), 4611686018427387904) + excluded.retried_total,
        rescued_total = least(greatest(windlass_count.rescued_total, -4611686018427387904), 4611686018427387904) + excluded.rescued_total
)
select
    -- not those of `chosen`, which another one may have added up at the same moment
    (select count(*) from folded),
    (select max(id) from chosen),
    array(select id || ' of queue ' || quote_literal(queue) from chosen where is_damaged)
