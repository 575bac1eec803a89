select delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module, retried_at
from windlass_delivery
where seq = :seq
order by delivery
