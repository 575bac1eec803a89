-- tells this store from every other one
select value from windlass_meta where name = 'store'
