-- writes which parcel of a move and a queue is the last one here, unless it is not the next one
insert into windlass_parcel as last (move, queue, number, ids)
select :move::text, :queue::text, :number::bigint, :ids::uuid[]
where :number::bigint = 1 or exists (select from windlass_parcel where move = :move::text and queue = :queue::text)
on conflict (move, queue) do update set number = excluded.number, ids = excluded.ids
    where last.number + 1 = excluded.number
returning number
