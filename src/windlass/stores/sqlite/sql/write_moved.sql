insert into windlass_moved (destination, move) values (:destination, :move)
