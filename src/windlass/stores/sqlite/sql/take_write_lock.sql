-- deletes nothing: as the first statement of a transaction it takes the write lock before anything is read
delete from windlass_meta
where false
