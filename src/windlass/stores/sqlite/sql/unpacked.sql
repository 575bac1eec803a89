select number, ids from windlass_parcel where move = ? and queue = ?
