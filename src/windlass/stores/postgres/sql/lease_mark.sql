select clock_timestamp(), (select value from windlass_meta where name = 'lease_mark')
