insert into windlass_parcel (move, queue, number, ids) values (:move, :queue, :number, :ids)
on conflict (move, queue) do update set number = excluded.number, ids = excluded.ids
