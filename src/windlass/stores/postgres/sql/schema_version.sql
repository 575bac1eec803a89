select name, value from windlass_meta where name in ('schema', 'making')
