-- keys that time has freed, so that others can take them
delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where name = any(:names::text[]) and expires_at <= coalesce(:now::timestamptz, clock_timestamp())
    -- in one order, so that two never wait for each other
    order by name
    for update
))
