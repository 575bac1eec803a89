-- what tells this store from every other one, and whether our commits wait for the disk
select value, current_setting('synchronous_commit') from windlass_meta where name = 'store'
