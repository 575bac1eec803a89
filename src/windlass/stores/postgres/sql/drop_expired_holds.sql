-- from :since on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
delete from windlass_hold
where name = any(array(
    select name
    from windlass_hold
    where expires_at <= (select now from moment) - :age::interval and expires_at >= coalesce(:since::timestamptz, '-infinity')
    order by expires_at
    limit :limit::integer
    for update skip locked
))
returning expires_at
