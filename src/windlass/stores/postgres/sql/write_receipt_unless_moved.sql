-- as write_receipt.sql; the answer says whether the store was moved: then all must be undone
insert into windlass_receipt (request_id, at, reply)
values (:request_id::text, coalesce(:now::timestamptz, clock_timestamp()), :reply::text)
returning (select value from windlass_meta where name = 'moved' and value <> '')
