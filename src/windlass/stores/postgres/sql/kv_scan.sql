select key, value
from windlass_kv
where key >= :first::bytea and key < :past::bytea
order by key
limit :limit::integer
