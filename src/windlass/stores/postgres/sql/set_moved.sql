update windlass_meta set value = :moved::text where name = 'moved'
