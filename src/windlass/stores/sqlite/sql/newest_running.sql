-- whatever has a lease is running, and the index alone tells
select seq from windlass_job indexed by windlass_leased
where lease_expires_at is not null and seq < :before
order by seq desc
limit :limit
