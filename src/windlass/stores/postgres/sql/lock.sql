with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
insert into windlass_lock (name, holder, expires_at)
select :name::text, :holder::text, least(moment.now + :ttl::interval, '9999-12-31 23:59:59.999999+00')
from moment
on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
where windlass_lock.holder = excluded.holder or windlass_lock.expires_at <= (select now from moment)
returning 1
