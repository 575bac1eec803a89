select number, ids::text[] from windlass_parcel where move = $1::text and queue = $2::text
