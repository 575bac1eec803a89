insert into windlass_timing (minute, queue, kind, what, range, count) values (?, ?, ?, ?, ?, ?)
on conflict (minute, queue, kind, what, range) do update set count = count + excluded.count
