-- Note on the last delivery of ended jobs that they are retried. A job that was never claimed gets a delivery of the number 0
-- for it, which tells how it had ended. A row is written anew: no role needs the right to change one.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
),
last as (
    delete from windlass_delivery as ended
    using windlass_job as job
    where job.seq = any(:seqs::bigint[]) and ended.seq = job.seq and ended.delivery = job.delivery
    returning ended.*
)
insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module, retried_at
)
select
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module,
    (select now from moment)
from last
union all
select
    job.seq, 0, 0, ended.at, ended.at, null,
    case job.state when 'cancelled' then 'cancelled' else 'failed' end, null, null, null, null, moment.now
from moment
cross join windlass_job as job
cross join lateral (
    -- a damaged time of the end would make this delivery damaged too
    select case
        when job.finished_at between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00' then job.finished_at
        else moment.now
    end as at
) as ended
where job.seq = any(:seqs::bigint[]) and job.delivery = 0 and not exists (select from last where last.seq = job.seq)
