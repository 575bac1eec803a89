-- from $4 on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where expires_at <= (select now from moment) - $2::interval and expires_at >= coalesce($4::timestamptz, '-infinity')
    order by expires_at
    limit $3::integer
    for update skip locked
))
returning expires_at
