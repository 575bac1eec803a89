delete from windlass_moved
