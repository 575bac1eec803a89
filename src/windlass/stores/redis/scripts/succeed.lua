-- once: asked base lines news places holders holds ends damage each settled
-- Write that claims succeeded, as settle.lua would, for settlements that bring nothing along: nearly all do not. Less is read
-- of a job here than settle.lua reads, unless other jobs follow it.
local function result_of(settlement)
    return {'result', settlement[5], 'result_codec', settlement[6]}
end

local function succeed_followed(settlement)
    -- parts: jobs
    local job, why = fence(settlement[1], settlement[2])
    if not job then
        return why
    end
    stops_running(job)
    ends(job, 'succeeded', settlement[3], settlement[5] and result_of(settlement))
    return 'done'
end

local function succeed(settlement)
    local id, token = settlement[1], settlement[2]
    local hash = job_key(id)
    local found = call('HMGET', hash, 'claim', 'state', 'head', 'hold', 'key', 'logged', 'has_followers')
    local holds, _, delivery
    if found[1] then
        holds, _, delivery = cmsgpack.unpack(found[1])
    end
    if holds ~= token then
        return 'lost'
    elseif found[2] ~= 'running' then
        return 'repeated'
    elseif found[7] then
        return succeed_followed(settlement)
    end
    local seq, queue, kind = cmsgpack.unpack(found[3])
    assert(kind and delivery, 'its head or its claim is damaged')
    local job = {
        id = id, hash = hash, queue = queue, kind = kind, seq = seq, state = 'running',
        has_no_lists = not found[6] and delivery == 1,
    }
    if found[4] then
        job.hold, job.key = cmsgpack.unpack(found[4]), found[5] or nil
        local is_sound = not job.hold or type(job.hold) == 'table' and type(job.hold[1]) == 'string'
        assert(is_sound, 'its hold is damaged')
    end
    stops_running(job)
    ends(job, 'succeeded', settlement[3], settlement[5] and result_of(settlement))
    return 'done'
end

return settle_each(succeed)
