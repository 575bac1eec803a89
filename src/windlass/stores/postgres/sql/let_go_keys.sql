delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where name = any($1::text[])
    -- in one order, so that two never wait for each other
    order by name
    for update
))
