-- a job that was never claimed has no delivery to note it with: it gets one, of the number 0, that tells how it had ended
insert into windlass_delivery (seq, delivery, attempt, started_at, ended_at, outcome, retried_at)
select seq, 0, 0, iif(finished_at between :earliest and :latest, finished_at, :now),
    iif(finished_at between :earliest and :latest, finished_at, :now),
    case state when 'cancelled' then 'cancelled' else 'failed' end, :now
from windlass_job
where seq = :seq
on conflict (seq, delivery) do update set retried_at = excluded.retried_at
