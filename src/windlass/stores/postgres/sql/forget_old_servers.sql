-- from :since on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
delete from windlass_server
where id = any(array(
    select id
    from windlass_server
    where seen_at <= (select now from moment) - :age::interval and seen_at >= coalesce(:since::timestamptz, '-infinity')
    order by seen_at
    limit :limit::integer
    for update skip locked
))
returning seen_at
