insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module, retried_at
)
select *
from unnest(
    :seqs::bigint[], :deliveries::integer[], :attempts::integer[], :started_ats::timestamptz[],
    :ended_ats::timestamptz[], :workers::text[], :outcomes::text[], :messages::text[], :types::text[],
    :tracebacks::text[], :modules::text[], :retried_ats::timestamptz[]
)
