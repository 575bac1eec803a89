-- Added up before they are written, each row once, and in one order: so that two writers never wait for each other.
insert into windlass_timing as kept (minute, queue, kind, what, range, count)
select given.minute, given.queue, given.kind, given.what, given.range, sum(given.count)::bigint
from unnest(:minutes::timestamptz[], :queues::text[], :kinds::text[], :whats::text[], :ranges::integer[], :counts::bigint[])
    as given (minute, queue, kind, what, range, count)
group by given.minute, given.queue, given.kind, given.what, given.range
order by given.minute, given.queue, given.kind, given.what, given.range
on conflict (minute, queue, kind, what, range) do update set
    -- a damaged count may be the largest there is
    count = least(kept.count, 4611686018427387904) + excluded.count
