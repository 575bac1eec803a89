insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module
)
values (
    $2::bigint, $3::integer, $4::integer,
    -- when it began is missing where the record is damaged
    coalesce($5::timestamptz, $1::timestamptz, clock_timestamp()),
    coalesce($1::timestamptz, clock_timestamp()), $6::text, $7::text, $8::text, $9::text, $10::text, $11::text
)
on conflict (seq, delivery) do nothing
