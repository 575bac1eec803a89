-- writes which parcel of a move and a queue is the last one here, unless it is not the next one
insert into windlass_parcel as last (move, queue, number, ids)
select $1::text, $2::text, $3::bigint, $4::uuid[]
where $3::bigint = 1 or exists (select from windlass_parcel where move = $1::text and queue = $2::text)
on conflict (move, queue) do update set number = excluded.number, ids = excluded.ids
    where last.number + 1 = excluded.number
returning number
