insert into windlass_delivery (seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback)
values (
    $2::bigint, $3::integer, $4::integer, $5::timestamptz, coalesce($1::timestamptz, clock_timestamp()), $6::text,
    $7::text, $8::text, $9::text, $10::text
)
on conflict (seq, delivery) do nothing
