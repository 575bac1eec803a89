-- as waiting_near.sql, of all waiting jobs of a queue: each is looked at, by the index of its state; :without are passed by
with chosen as materialized (
    select waiting.seq
    from (
        (
            select seq from windlass_job where state = 'pending' and queue = :queue::text
            order by queue, priority, run_at, seq
        )
        union all
        (
            select seq from windlass_job where state = 'scheduled' and queue = :queue::text
            order by queue, run_at, seq
        )
    ) as waiting
    where not waiting.seq = any(:without::bigint[])
    order by waiting.seq
    limit :limit::integer
)
select seq, octet_length(payload) + least(greatest(log_lines, 0), 500) * 4096
from windlass_job
where seq = any(array(select chosen.seq from chosen))
order by seq
