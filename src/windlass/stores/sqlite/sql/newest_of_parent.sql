select seq from windlass_job indexed by windlass_of_parent
where parent_id = :parent_id and seq < :before
order by seq desc
limit :limit
