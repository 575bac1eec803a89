-- the earliest first, and not all at once: a flood of due jobs must not hold the write lock for long
update windlass_job
set state = 'pending'
where seq in (
    select seq from windlass_job indexed by windlass_due
    where state = 'scheduled' and queue = :queue and run_at <= :now
    order by run_at, seq
    limit :limit
)
