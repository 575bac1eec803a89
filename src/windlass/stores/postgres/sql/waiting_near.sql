-- the first waiting jobs of a queue from a number on, among the next $3 records of any; and how large each may be with its
-- log
select seq, octet_length(payload) + least(log_lines, 500) * 4096
from (
    select seq, queue, state, payload, log_lines
    from windlass_job
    where seq >= $2::bigint
    order by seq
    limit $3::integer
) as looked
where queue = $1::text and state in ('pending', 'scheduled')
order by seq
limit $4::integer
