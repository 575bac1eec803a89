-- :ids and :pairs, each id with its token behind it, are JSON arrays
update windlass_job
set lease_expires_at = :lease_expires_at
where id in (select value from json_each(:ids))
    and id || token in (select value from json_each(:pairs))
    and state = 'running'
returning id, token, cancel_requested
