update windlass_job
set lease_expires_at = :lease_expires_at
-- in :pairs each id is followed by its token
where id in (select value from json_each(:ids))
    and id || token in (select value from json_each(:pairs))
    and state = 'running'
returning id, token, cancel_requested
