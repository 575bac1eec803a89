delete from windlass_meta where name = 'making'
