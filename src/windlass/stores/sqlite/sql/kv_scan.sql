select key, value from windlass_kv
where key >= :prefix and (:past is null or key < :past) and (:after is null or key > :after)
order by key
limit :limit
