delete from windlass_lock
where name = :name::text and holder = :holder::text
returning expires_at > coalesce(:now::timestamptz, clock_timestamp())
