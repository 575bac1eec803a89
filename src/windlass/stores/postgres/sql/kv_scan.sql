select key, value
from windlass_kv
where key >= $1::bytea and key < $2::bytea
order by key
limit $3::integer
