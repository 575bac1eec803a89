select minute, queue, kind, {total_columns}
from windlass_count
where minute >= :since and minute < :until
order by minute, queue, kind
