-- A job, as it is read before it is written. See keys.py.

-- Return what was unpacked of a head, which never changes, once it is all that there must be and no more, and of the right
-- types; an error is raised where it is not.
local function sound_head(...)
    local seq, queue, kind, priority, max_attempts, created_at = ...
    local is_sound = seq + priority + max_attempts + created_at and #queue > 0 and #kind >= 0 and select('#', ...) == 6
    assert(is_sound, 'its head is damaged')
    return ...
end

-- What moves need to know of a job, or nil. An error is raised where something of it is damaged, so whoever reads a job
-- before the first write of it can write all of it.
local function read_job(id)
    local hash = job_key(id)
    local found = call('HMGET', hash, 'head', 'state', 'run_at', 'claim', 'hold', 'key')
    if not found[1] then
        return nil
    end
    local job = {id = id, hash = hash, state = found[2] or 'pending', attempt = 0, delivery = 0, key = found[6] or nil}
    job.seq, job.queue, job.kind, job.priority, job.max_attempts, job.created_at = sound_head(cmsgpack.unpack(found[1]))
    job.run_at = tonumber(found[3] or job.created_at)
    if found[4] then
        job.token, job.attempt, job.delivery, job.claimed_at, job.worker = cmsgpack.unpack(found[4])
    end
    assert(job.run_at and job.attempt + job.delivery, 'its time or its claim is damaged')
    if found[5] then
        job.hold = cmsgpack.unpack(found[5])
        assert(type(job.hold) == 'table', 'its hold is damaged')
    end
    return job
end

local function is_running(job, token)
    return job and job.state == 'running' and job.token == token
end

local function is_finished(job)
    return job.state == 'succeeded' or job.state == 'dead' or job.state == 'cancelled'
end

local function is_waiting(job)
    return job.state == 'pending' or job.state == 'scheduled'
end

local function forget_kind(queue, kind)
    if call('EXISTS', ready_key(queue, kind)) == 0 then
        call('SREM', P .. 'kinds|' .. queue, kind)
    end
end
