insert into windlass_lock (name, holder, expires_at) values (:name, :holder, :expires_at)
on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
where windlass_lock.holder = excluded.holder or windlass_lock.expires_at <= :now
