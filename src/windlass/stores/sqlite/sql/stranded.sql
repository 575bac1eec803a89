select count(*) from (
    select 1 from windlass_job indexed by windlass_leased
    where state = 'running' and lease_expires_at <= :now
        and not exists (select 1 from windlass_server where seen_at > :since)
    limit 1000
)
