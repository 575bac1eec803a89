-- how many records of each end the queues have, exactly
select queue, sum(succeeded)::bigint, sum(dead)::bigint, sum(cancelled)::bigint
from (
    select queue, succeeded, dead, cancelled from windlass_count where minute = 'infinity'
    union all
    select queue, succeeded, dead, cancelled from windlass_delta
) as counted
group by queue
having sum(succeeded) > 0 or sum(dead) > 0 or sum(cancelled) > 0
