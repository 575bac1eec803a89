-- what was added up, and what happened since
select
    minute, queue, kind, sum(enqueued_total)::bigint, sum(succeeded_total)::bigint, sum(dead_total)::bigint,
    sum(cancelled_total)::bigint, sum(retried_total)::bigint, sum(rescued_total)::bigint
from (
    select
        minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
    from windlass_count
    where minute >= $1::timestamptz and minute < $2::timestamptz
    union all
    select
        minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
    from windlass_delta
    where minute >= $1::timestamptz and minute < $2::timestamptz
        -- claims count nothing that happened, only where jobs stand
        and enqueued_total + succeeded_total + dead_total + cancelled_total + retried_total + rescued_total > 0
) as counted
group by minute, queue, kind
order by minute, queue collate "C", kind collate "C"
