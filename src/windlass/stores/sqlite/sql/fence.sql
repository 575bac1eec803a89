-- an update takes the write lock even where a transaction has only read so far, and where no claim holds
-- :ids and :pairs, each id with its token behind it, are JSON arrays
update windlass_job
set token = token
where id in (select value from json_each(:ids))
    and id || token in (select value from json_each(:pairs))
    and state = 'running'
returning id, token
