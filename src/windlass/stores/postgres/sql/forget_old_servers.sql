-- from $4 on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
delete from windlass_server
where id = any(array(
    select id
    from windlass_server
    where seen_at <= (select now from moment) - $2::interval and seen_at >= coalesce($4::timestamptz, '-infinity')
    order by seen_at
    limit $3::integer
    for update skip locked
))
returning seen_at
