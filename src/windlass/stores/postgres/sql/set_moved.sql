update windlass_meta set value = $1::text where name = 'moved'
