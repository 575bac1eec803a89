update windlass_job
set state = 'cancelled', finished_at = coalesce($1::timestamptz, clock_timestamp())
where seq = any($2::bigint[])
