select count(*) from (
    select 1 from windlass_job indexed by windlass_leased
    where state = 'running' and lease_expires_at <= ?
        and not exists (select 1 from windlass_server where seen_at > ?)
    limit 1000
)
