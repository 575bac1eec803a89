-- from $4 on: what was before it is gone, and an old snapshot may keep it
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
delete from windlass_receipt
where request_id = any(array(
    select request_id
    from windlass_receipt
    where at <= (select now from moment) - $2::interval and at >= coalesce($4::timestamptz, '-infinity')
    order by at
    limit $3::integer
    for update skip locked
))
returning at
