select delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback
from windlass_delivery
where seq = ?
order by delivery
