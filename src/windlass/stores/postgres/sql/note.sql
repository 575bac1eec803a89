-- in the transaction that has compared the tokens; a number that something else has written must be one to count on from
update windlass_job
set progress = coalesce(:progress::text, progress),
    log_lines = case when log_lines > 2147400000 then 2147000000 else greatest(log_lines, 0) end + :lines::integer
where seq = :seq::bigint
