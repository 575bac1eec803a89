select seq from windlass_job indexed by windlass_of_tenant
where tenant = :tenant and seq < :before
order by seq desc
limit :limit
