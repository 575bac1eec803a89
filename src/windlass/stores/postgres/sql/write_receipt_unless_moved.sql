-- as write_receipt.sql; the answer says whether the store was moved: then all must be undone
insert into windlass_receipt (request_id, at, reply)
values ($1::text, coalesce($2::timestamptz, clock_timestamp()), $3::text)
returning (select value from windlass_meta where name = 'moved' and value <> '')
