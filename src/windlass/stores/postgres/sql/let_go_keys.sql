delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where name = any(:names::text[])
    -- in one order, so that two never wait for each other
    order by name
    for update
))
