-- no "on conflict": a call that is repeated although it was done fails here, and all of its repetition with it
insert into windlass_receipt (request_id, at, reply)
values (:request_id::text, coalesce(:now::timestamptz, clock_timestamp()), :reply::text)
