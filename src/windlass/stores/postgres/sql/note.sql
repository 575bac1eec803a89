-- in the transaction that has compared the tokens
update windlass_job
set progress = coalesce($2::text, progress), log_lines = log_lines + $3::integer
where seq = $1::bigint
