select destination, move from windlass_moved
