-- A job, and the lines that it stands in: one for its state, and that of all jobs of its queue. See keys.py.

-- Return what was unpacked of a head, which never changes, once it is all that there must be and no more, and of the right
-- types; an error is raised where it is not.
local function sound_head(...)
    local seq, queue, kind, priority, max_attempts, created_at = ...
    local is_sound = seq + priority + max_attempts + created_at and #queue > 0 and #kind >= 0 and select('#', ...) == 6
    assert(is_sound, 'its head is damaged')
    return ...
end

-- what moves need to know of a job, or nil
local function read_job(id)
    local hash = job_key(id)
    local found = call('HMGET', hash, 'head', 'state', 'run_at', 'claim', 'hold', 'key')
    if not found[1] then
        return nil
    end
    local job = {id = id, hash = hash, state = found[2] or 'pending', attempt = 0, delivery = 0, key = found[6] or nil}
    job.seq, job.queue, job.kind, job.priority, job.max_attempts, job.created_at = cmsgpack.unpack(found[1])
    job.run_at = tonumber(found[3] or job.created_at)
    if found[4] then
        job.token, job.attempt, job.delivery, job.claimed_at, job.worker = cmsgpack.unpack(found[4])
    end
    if found[5] then
        job.hold = cmsgpack.unpack(found[5])
    end
    return job
end

local function packed_claim(job)
    return cmsgpack.pack(job.token, job.attempt, job.delivery, job.claimed_at, job.worker)
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

-- let a job stand in the line of no state
local function leave(job)
    local queue = job.queue
    if job.state == 'running' then
        part(P .. 'leased|' .. queue, job.id)
        return
    end
    -- it may have come there by this script
    flush()
    if job.state == 'pending' then
        call('ZREM', ready_key(queue, job.kind), place_of(job))
        forget_kind(queue, job.kind)
    elseif job.state == 'scheduled' then
        call('ZREM', P .. 'due|' .. queue, job.id)
    else
        call('ZREM', P .. 'ended|' .. queue .. '|' .. job.state, job.id)
        if job.state == 'dead' then
            call('ZREM', P .. 'dead|' .. queue, job.id)
        end
    end
end

-- let a job wait for a time: pending when that has come, else scheduled
local function wait_until(job, run_at)
    leave(job)
    job.run_at = run_at
    job.state = run_at <= now and 'pending' or 'scheduled'
    call('HSET', job.hash, 'state', job.state, 'run_at', int(run_at))
    if job.delivery > 0 then
        job.claimed_at, job.worker = nil, nil
        call('HSET', job.hash, 'claim', packed_claim(job))
    end
    if job.state == 'pending' then
        join_ready(job)
    else
        join_due(job)
    end
    tell('queue:' .. job.queue)
end

local function remove_job(job)
    leave(job)
    part(P .. 'jobs|' .. job.queue, job.id)
    call('DEL', job.hash, P .. 'history|' .. job.id, P .. 'log|' .. job.id)
end

local HISTORY_KEPT = 20

-- write how the delivery that runs ended; of a success the job itself tells
local function end_delivery(job, outcome, failure)
    local key = P .. 'history|' .. job.id
    local started_at = job.claimed_at or job.created_at
    local written = array(7)
        .. cmsgpack.pack(job.delivery, job.attempt, started_at, now, job.worker, outcome)
        .. (failure and array(3) .. cmsgpack.pack(failure[1], failure[2], failure[3]) or NIL)
    call('RPUSH', key, written)
    call('LTRIM', key, -HISTORY_KEPT, -1)
    if failure then
        call('HSET', job.hash, 'error', failure[4])
    end
end

-- make scheduled jobs of a queue that have come due pending, the earliest first; return how many
local function promote(queue, limit)
    local due = P .. 'due|' .. queue
    local ids = call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, limit)
    for _, id in ipairs(ids) do
        local job = read_job(id)
        part(due, id)
        -- a server that is allowed to forget may have forgotten it
        if job then
            job.state = 'pending'
            call('HSET', job.hash, 'state', 'pending')
            join_ready(job)
        end
    end
    flush()
    return #ids
end
