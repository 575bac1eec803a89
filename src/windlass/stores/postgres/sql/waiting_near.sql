-- the first waiting jobs of a queue from a number on, among the next :looked_at records of any; and how large each may be
-- with its log; :without are passed by
select seq, octet_length(payload) + least(greatest(log_lines, 0), 500) * 4096
from (
    select seq, queue, state, payload, log_lines
    from windlass_job
    where seq >= :near::bigint
    order by seq
    limit :looked_at::integer
) as looked
where queue = :queue::text and state in ('pending', 'scheduled') and not seq = any(:without::bigint[])
order by seq
limit :limit::integer
