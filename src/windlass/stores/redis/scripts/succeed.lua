-- once: asked base lines news places steps holders holds ends damage each settled
-- Write that claims succeeded, as settle.lua would, for settlements that bring nothing along: nearly all do not. Less is read
-- of a job here than settle.lua reads, unless other jobs follow it.
local function write_success(job, settlement)
    local keep, result, codec = settlement[3], settlement[5], settlement[6]
    stops_running(job)
    ends(job, 'succeeded', keep, result and {'result', result, 'result_codec', codec})
    return 'done'
end

local function succeed_followed(settlement)
    -- parts: jobs
    local job, why = fence(settlement[1], settlement[2])
    return job and write_success(job, settlement) or why
end

local function succeed(settlement)
    local id, token = settlement[1], settlement[2]
    local job = {id = id, hash = job_key(id), state = 'running'}
    local found = call('HMGET', job.hash, 'claim', 'state', 'head', 'hold', 'key', 'logged', 'has_followers')
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
    job.seq, job.queue, job.kind = cmsgpack.unpack(found[3])
    assert(job.kind and delivery, 'its head or its claim is damaged')
    if found[4] then
        job.hold, job.key = cmsgpack.unpack(found[4]), found[5] or nil
        local is_sound = not job.hold or type(job.hold) == 'table' and type(job.hold[1]) == 'string'
        assert(is_sound, 'its hold is damaged')
    end
    job.has_no_lists = not found[6] and delivery == 1
    return write_success(job, settlement)
end

return settle_each(succeed)
