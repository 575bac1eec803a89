insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module, retried_at
)
select *
from unnest(
    $1::bigint[], $2::integer[], $3::integer[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::timestamptz[]
)
