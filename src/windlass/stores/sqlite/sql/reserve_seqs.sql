update windlass_meta set value = value + ? where name = 'seq' returning value
