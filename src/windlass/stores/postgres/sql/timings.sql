select minute, queue, kind, what, range, least(greatest(count, -9007199254740992), 9007199254740992)::bigint
from windlass_timing
where minute >= :since::timestamptz and minute < :until::timestamptz
order by minute, queue collate "C", kind collate "C", what, range
