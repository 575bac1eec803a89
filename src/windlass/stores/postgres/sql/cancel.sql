update windlass_job
set state = 'cancelled', finished_at = coalesce(:now::timestamptz, clock_timestamp())
where seq = any(:seqs::bigint[])
