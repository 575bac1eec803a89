-- the first waiting jobs of a queue from a number on, among the next $3 records of any; and how large each may be with its
-- log; $5 are passed by
select seq, octet_length(payload) + least(greatest(log_lines, 0), 500) * 4096
from (
    select seq, queue, state, payload, log_lines
    from windlass_job
    where seq >= $2::bigint
    order by seq
    limit $3::integer
) as looked
where queue = $1::text and state in ('pending', 'scheduled') and not seq = any($5::bigint[])
order by seq
limit $4::integer
