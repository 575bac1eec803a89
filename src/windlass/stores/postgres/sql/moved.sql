select value from windlass_meta where name = 'moved' and value <> ''
