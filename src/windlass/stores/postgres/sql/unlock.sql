delete from windlass_lock
where name = $2::text and holder = $3::text
returning expires_at > coalesce($1::timestamptz, clock_timestamp())
