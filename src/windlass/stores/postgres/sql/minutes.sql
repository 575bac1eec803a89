-- What was added up, and what happened since. A sum that a damaged count has made too large is given as the largest that is
-- exact in JSON.
select
    minute,
    queue,
    kind,
    least(greatest(sum(enqueued_total), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(succeeded_total), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(dead_total), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(cancelled_total), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(retried_total), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(rescued_total), -9007199254740992), 9007199254740992)::bigint
from (
    select
        minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
    from windlass_count
    where minute >= :since::timestamptz and minute < :until::timestamptz
    union all
    select
        minute, queue, kind, enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
    from windlass_delta
    where minute >= :since::timestamptz and minute < :until::timestamptz
        -- claims count nothing that happened, only where jobs stand
        and greatest(
            enqueued_total, succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
        ) > 0
) as counted
group by minute, queue, kind
order by minute, queue collate "C", kind collate "C"
