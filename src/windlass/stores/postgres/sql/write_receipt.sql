-- no "on conflict": a call that is repeated although it was done fails here, and all of its repetition with it
insert into windlass_receipt (request_id, at, reply)
values ($1::text, coalesce($2::timestamptz, clock_timestamp()), $3::text)
