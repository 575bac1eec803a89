-- Which job has an id already, and whether one that is to be enqueued under it is a repeat of it.
local function tenant_in(more)
    return more and cmsgpack.unpack(more)[2] or ''
end

-- whether the job that is here under an id is another one than a job of this queue, kind and `more`; raises an error where
-- it is damaged
local function is_another(id, queue, kind, more)
    local found = call('HMGET', job_key(id), 'head', 'more')
    local _, its_queue, its_kind = cmsgpack.unpack(found[1])
    assert(its_kind, 'its head is damaged')
    return queue ~= its_queue or kind ~= its_kind or tenant_in(more) ~= tenant_in(found[2])
end

-- what is told of a job whose id another job has
local function taken(job)
    return {job[1], job[2], job[3], tenant_in(job[9])}
end

-- Return what is told of a job that is to be enqueued under the id of one that is here, or nil when it is a repeat of it;
-- {id, why} when that one is damaged.
local function conflict_with_stored(job)
    local done, another = pcall(is_another, job[1], job[2], job[3], job[9])
    if not done then
        return {job[1], damage(another)}
    end
    return another and taken(job) or nil
end

-- the same of a job under the id of one that comes before it in the batch
local function conflict_with_earlier(job, first)
    local another = job[2] ~= first[2] or job[3] ~= first[3] or tenant_in(job[9]) ~= tenant_in(first[9])
    return another and taken(job) or nil
end

-- Return what is said of a key that jobs need to be enqueued, a line of their queues or a key of the store, where its value
-- is not of its type; nil when all of them are sound.
local function broken_key(jobs)
    local known = {}
    local function check(command, key, ...)
        local found = redis.pcall(command, P .. key, ...)
        if type(found) ~= 'table' then
            return found
        elseif not string.find(found.err, 'WRONGTYPE') then
            error(found)
        end
        -- caught below: many are checked, and the first is told
        error(key, 0)
    end
    local function check_all()
        local seq = check('GET', 'seq')
        if seq and not string.find(seq, '^%d+$') then
            error('seq', 0)
        end
        check('SISMEMBER', 'queues', '')
        local queue, kind
        for _, job in ipairs(jobs) do
            -- most stand behind one of the same line
            if job[2] ~= queue or job[3] ~= kind then
                queue, kind = job[2], job[3]
                if not known[queue] then
                    known[queue] = {}
                    check('ZCARD', 'jobs|' .. queue)
                    check('ZCARD', 'due|' .. queue)
                    check('SISMEMBER', 'kinds|' .. queue, '')
                end
                if not known[queue][kind] then
                    known[queue][kind] = true
                    check('ZCARD', 'ready|' .. queue .. '|' .. kind)
                end
            end
        end
    end
    local done, key = pcall(check_all)
    if done then
        return nil
    end
    return 'the value at ' .. damage(key) .. ' is not of the type of this key'
end

-- Return a set of the places of those jobs of a batch without keys that are here, or that repeat one before them; or nil and
-- why the batch is refused.
local function ids_here(jobs)
    local why = broken_key(jobs)
    if why then
        return nil, {why}
    end
    local here, firsts = {}, {}
    for at, job in ipairs(jobs) do
        local id = job[1]
        local first, conflict = firsts[id], nil
        if first then
            here[at] = true
            conflict = conflict_with_earlier(job, first)
        else
            firsts[id] = job
            if call('EXISTS', P .. 'job|' .. id) == 1 then
                here[at] = true
                conflict = conflict_with_stored(job)
            end
        end
        if conflict then
            return nil, conflict
        end
    end
    return here, nil
end
