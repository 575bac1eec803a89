with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where expires_at <= (select now from moment) - $2::interval
    order by expires_at
    limit $3::integer
    for update skip locked
))
returning 1
