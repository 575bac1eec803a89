-- Unique keys that are taken and freed.
local SPARE = 60000
local FORGOTTEN_AT_ONCE = 10

local function holder_for(hold, id)
    return {id, hold[7], hold[4] and later(hold[4]) or false}
end

-- write down that time will free a key, and forget some that it has freed
local function note_time(name, at, left)
    local timed = P .. 'timed'
    for _, over in ipairs(call('ZRANGE', timed, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, FORGOTTEN_AT_ONCE)) do
        call('ZREM', timed, over)
    end
    call('ZADD', timed, int(at), name)
    -- it goes with the last of them
    call('EXPIRE', timed, int(left / 1000 + 1), 'NX')
    call('EXPIRE', timed, int(left / 1000 + 1), 'GT')
end

local function write_holder(name, held)
    local key = P .. 'hold|' .. name
    if held[3] then
        -- the time in it is what counts: this only clears it away afterwards
        local left = math.min((held[3] - now) / 1000 + SPARE, 2^52)
        call('SET', key, cmsgpack.pack(held), 'PX', int(left))
        note_time(name, held[3], left)
    else
        call('SET', key, cmsgpack.pack(held))
    end
end

local function take(hold, id)
    write_holder(hold[1], holder_for(hold, id))
end

-- let nobody hold a key, whatever would have freed it
local function forget_holder(name)
    call('DEL', P .. 'hold|' .. name)
    call('ZREM', P .. 'timed', name)
end

-- free the key that a job holds, unless time alone frees it
local function free(job)
    if job.hold and job.hold[3] ~= 'time' and holds_it(job) then
        call('DEL', P .. 'hold|' .. job.hold[1])
    end
end

-- forget a key that was freed by the claim: the job will never take it back
local function give_up(job)
    if job.hold and not job.key then
        job.hold = nil
        call('HDEL', job.hash, 'hold')
    end
end

local function may_take_back(job)
    if not job.hold or job.key then
        return false
    end
    local held, why = holder(job.hold[1])
    return not held and not why
end

-- let a job that was released before it started hold its key again, if that is free
local function take_back(job)
    if may_take_back(job) then
        take(job.hold, job.id)
        job.key = job.hold[2]
        call('HSET', job.hash, 'key', job.key)
    end
end
