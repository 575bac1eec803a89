-- what tells this store from every other one, whether our commits wait for the disk, and whether texts are checked
select value, current_setting('synchronous_commit'), current_setting('server_encoding') from windlass_meta where name = 'store'
