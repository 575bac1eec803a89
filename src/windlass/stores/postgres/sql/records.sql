-- how many records of each state the queues have, exactly
select
    queue, sum(scheduled)::bigint, sum(pending)::bigint, sum(running)::bigint, sum(succeeded)::bigint,
    sum(dead)::bigint, sum(cancelled)::bigint
from (
    select queue, scheduled, pending, running, succeeded, dead, cancelled
    from windlass_count
    where minute = 'infinity' and (:queue::text is null or queue = :queue::text)
    union all
    select queue, scheduled, pending, running, succeeded, dead, cancelled
    from windlass_delta
    where :queue::text is null or queue = :queue::text
) as counted
group by queue
