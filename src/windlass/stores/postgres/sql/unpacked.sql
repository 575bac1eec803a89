select number, ids::text[] from windlass_parcel where move = :move::text and queue = :queue::text
