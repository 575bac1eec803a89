select seq from windlass_job indexed by windlass_of_kind
where kind = :kind and seq < :before
order by seq desc
limit :limit
