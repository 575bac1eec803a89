insert into windlass_log (seq, line, at, level, text, delivery)
select *
from unnest(
    :seqs::bigint[], :lines::integer[], :ats::timestamptz[], :levels::text[], :texts::text[], :deliveries::integer[]
)
