-- how many records of each end the queues have; exactly, where no changes are passed by (:above), which may have come late
select
    queue,
    least(greatest(sum(succeeded), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(dead), -9007199254740992), 9007199254740992)::bigint,
    least(greatest(sum(cancelled), -9007199254740992), 9007199254740992)::bigint
from (
    select queue, succeeded, dead, cancelled from windlass_count where minute = 'infinity'
    union all
    select queue, succeeded, dead, cancelled from windlass_delta where id > :above::bigint
) as counted
group by queue
having sum(succeeded) > 0 or sum(dead) > 0 or sum(cancelled) > 0
