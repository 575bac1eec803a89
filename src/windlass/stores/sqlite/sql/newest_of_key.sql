select seq from windlass_job indexed by windlass_of_key
where unique_key = :unique_key and seq < :before
order by seq desc
limit :limit
