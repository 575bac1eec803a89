-- in :pairs each id is followed by its token
where id in (select value from json_each(:ids))
    and id || token in (select value from json_each(:pairs))
    and state = 'running'
