-- The end of a claim whose job is done. Of its time the job itself tells, so there is no history to write.
local function free_by_end(id, hash, hold, key)
    local job = {id = id, hash = hash, hold = cmsgpack.unpack(hold), key = key or nil}
    free(job)
    give_up(job)
end

-- write that a claim succeeded; return "done", or why that is too late: "repeated" or "lost"
local function succeed(id, token, keep, result, codec)
    local hash = job_key(id)
    local found = call('HMGET', hash, 'claim', 'state', 'head', 'hold', 'key', 'logged')
    local holds, _, delivery
    if found[1] then
        holds, _, delivery = cmsgpack.unpack(found[1])
    end
    if holds ~= token then
        return 'lost'
    elseif found[2] ~= 'running' then
        return 'repeated'
    end
    local _, queue, kind = cmsgpack.unpack(found[3])
    assert(kind and delivery, 'its head or its claim is damaged')
    local leased = P .. 'leased|' .. queue
    if found[4] then
        free_by_end(id, hash, found[4], found[5])
    end
    part(leased, id)
    if keep then
        call('HSET', hash, 'state', 'succeeded', 'finished_at', int(now))
        if result then
            call('HSET', hash, 'result', result, 'result_codec', codec)
        end
        join(P .. 'ended|' .. queue .. '|succeeded', int(now), id)
    else
        part(P .. 'jobs|' .. queue, id)
        if found[6] or delivery > 1 then
            call('DEL', hash, P .. 'history|' .. id, P .. 'log|' .. id)
        else
            call('DEL', hash)
        end
    end
    count('succeeded', queue, kind)
    tell('ends')
    return 'done'
end
