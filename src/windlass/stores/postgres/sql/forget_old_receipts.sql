-- from :since on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
delete from windlass_receipt
where request_id = any(array(
    select request_id
    from windlass_receipt
    where at <= (select now from moment) - :age::interval and at >= coalesce(:since::timestamptz, '-infinity')
    order by at
    limit :limit::integer
    for update skip locked
))
returning at
