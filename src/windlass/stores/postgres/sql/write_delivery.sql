insert into windlass_delivery (
    seq, delivery, attempt, started_at, ended_at, worker, outcome, message, type, traceback, module
)
values (
    :seq::bigint, :delivery::integer, :attempt::integer,
    -- when it began is missing where the record is damaged
    coalesce(:started_at::timestamptz, :now::timestamptz, clock_timestamp()),
    coalesce(:now::timestamptz, clock_timestamp()), :worker::text, :outcome::text, :message::text, :type::text,
    :traceback::text, :module::text
)
on conflict (seq, delivery) do nothing
