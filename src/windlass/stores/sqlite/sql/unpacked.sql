select number, ids from windlass_parcel where move = :move and queue = :queue
