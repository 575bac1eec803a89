update windlass_job
{set_running}
where seq in (
    select seq from windlass_job indexed by windlass_ready
    where state = 'pending' and queue = :queue
    order by priority, run_at, seq
    limit :limit
)
returning {claimed_columns}
