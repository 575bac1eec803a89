-- :ids and :pairs, each id with its token behind it, are JSON arrays
-- the ids find the rows, the pairs fence them: a join of two lists would be a loop over both
delete from windlass_job
where id in (select value from json_each(:ids))
    and id || token in (select value from json_each(:pairs))
    and state = 'running'
returning token, id, seq, queue, kind, delivery, log_lines, hold, hold_until
