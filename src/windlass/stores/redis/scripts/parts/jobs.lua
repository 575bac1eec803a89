-- A job, as it is read before it is written. See keys.py.

local MOST = 2^53
local EARLIEST = -62135596800000000

-- return a stored time, or `otherwise` where it cannot be read: in a history it would make that entry damaged too
local function time_or(value, otherwise)
    local is_time = type(value) == 'number' and value % 1 == 0 and value >= EARLIEST and value <= LATEST
    return is_time and value or otherwise
end

-- Return what was unpacked of a head, which never changes, once it is all that there must be and no more; an error is raised
-- where it is not. Each comparison is of what a number alone can be compared with.
local function sound_head(...)
    local seq, queue, kind, priority, max_attempts, created_at = ...
    local numbers = seq + priority + max_attempts
    local is_sound = numbers <= MOST and numbers >= -MOST and created_at <= LATEST and created_at >= EARLIEST
        and #queue > 0 and #kind >= 0 and select('#', ...) == 6
    assert(is_sound, 'its head is damaged')
    return ...
end

-- What moves need to know of a job, or nil. An error is raised where something of it is damaged, so whoever reads a job
-- before the first write of it can write all of it.
local function read_job(id)
    local hash = job_key(id)
    local found = call('HMGET', hash, 'head', 'state', 'run_at', 'claim', 'hold', 'key')
    if not found[1] then
        -- a server that is allowed to forget may have forgotten it, but never one field alone
        assert(call('EXISTS', hash) == 0, 'its head is missing')
        return nil
    end
    local job = {id = id, hash = hash, state = found[2] or 'pending', attempt = 0, delivery = 0, key = found[6] or nil}
    job.seq, job.queue, job.kind, job.priority, job.max_attempts, job.created_at = sound_head(cmsgpack.unpack(found[1]))
    assert(type(job.queue) == 'string' and type(job.kind) == 'string', 'its head is damaged')
    job.run_at = tonumber(found[3] or job.created_at)
    if found[4] then
        job.token, job.attempt, job.delivery, job.claimed_at, job.worker = cmsgpack.unpack(found[4])
    end
    local has_claim = job.attempt >= 0 and job.attempt <= MOST and job.delivery >= 0 and job.delivery <= MOST
        and (not job.token or #job.token >= 0)
    assert(job.run_at and has_claim, 'its time or its claim is damaged')
    if found[5] then
        job.hold = cmsgpack.unpack(found[5])
        assert(type(job.hold) == 'table' and type(job.hold[1]) == 'string', 'its hold is damaged')
    end
    return job
end

-- The fence of a claim: return the job that runs by a token, or nil and why none does: "lost", or "repeated" where this
-- claim has ended.
local function fence(id, token)
    local job = read_job(id)
    if not job or job.token ~= token then
        return nil, 'lost'
    elseif job.state ~= 'running' then
        return nil, 'repeated'
    end
    return job
end

local function forget_kind(queue, kind)
    if call('EXISTS', ready_key(queue, kind)) == 0 then
        call('SREM', P .. 'kinds|' .. queue, kind)
    end
end

local function is_finished(job)
    return job.state == 'succeeded' or job.state == 'dead' or job.state == 'cancelled'
end

local function is_waiting(job)
    return job.state == 'pending' or job.state == 'scheduled'
end
