-- whole: asked numbers gate
-- Put one job in line that is ready at once and has nothing but a payload, as enqueue.lua would: nearly all that comes
-- alone is such a job. So it is one straight line; the tables and functions that serve many jobs took half of the time.
local job = ask.jobs[1]
local id, queue, kind = job[1], job[2], job[3]
local hash = P .. 'job|' .. id
local receipt = P .. 'receipt|' .. ask.request
local NOTHING_TOLD = '\0\0\0\0'

local before = ask.again and call('GET', receipt)
if before then
    -- a write, so that whoever waits for replicas waits until they have the first one too
    call('EXPIRE', receipt, ask.kept)
    return NOTHING_TOLD .. before
end
if AWAY then
    return AWAY
end
if call('EXISTS', hash) == 1 then
    -- of a repeat nothing is written; another job is refused as by enqueue.lua, and that is judged anew when it asks again
    local sound, another = pcall(function()
        local found = call('HMGET', hash, 'head', 'more')
        local _, its_queue, its_kind = cmsgpack.unpack(found[1])
        assert(its_kind, 'its head is damaged')
        return its_queue ~= queue or its_kind ~= kind or found[2] and cmsgpack.unpack(found[2])[2] ~= nil
    end)
    if not sound then
        return NOTHING_TOLD .. cmsgpack.pack({false, id, type(another) == 'table' and another.err or another})
    elseif another then
        return NOTHING_TOLD .. cmsgpack.pack({false, id, queue, kind, ''})
    end
    local reply = cmsgpack.pack({true, {{id, false}}})
    call('SET', receipt, reply, 'EX', ask.kept)
    return NOTHING_TOLD .. reply
end

-- The lines come first: where the value at one is not of its type they are left as they were, so no job is there by half. A
-- damaged count stays as it is.
local try = redis.pcall
local jobs, kinds, ready = P .. 'jobs|' .. queue, P .. 'kinds|' .. queue, P .. 'ready|' .. queue .. '|' .. kind
local totals = P .. 'totals|' .. queue
local is_sound, seq = pcall(next_numbers, 1)
local place, in_jobs, in_kinds, in_ready, total, in_queues
if is_sound then
    -- starts_waiting: the step of steps.lua for this job, whose state is in its lines alone; a function would take a tenth
    place = struct.pack('>I4I8I8', job[5], now, seq) .. id
    in_jobs = try('ZADD', jobs, seq, id)
    in_kinds = try('SADD', kinds, kind)
    in_ready = try('ZADD', ready, 0, place)
    total = try('HINCRBY', totals, 'enqueued', 1)
    in_queues = total == 1 and try('SADD', P .. 'queues', queue)
end
if not is_sound or type(in_jobs) == 'table' or type(in_kinds) == 'table' or type(in_ready) == 'table'
    or type(in_queues) == 'table' or type(total) == 'table'
    and not string.find(total.err, 'WRONGTYPE') and not string.find(total.err, 'integer')
    and not string.find(total.err, 'overflow') then
    try('ZREM', jobs, id)
    if place then
        try('ZREM', ready, place)
    end
    if in_kinds == 1 then
        try('SREM', kinds, kind)
    end
    if in_queues == 1 then
        try('SREM', P .. 'queues', queue)
    end
    if total == 1 then
        try('HDEL', totals, 'enqueued')
    elseif type(total) == 'number' then
        try('HINCRBY', totals, 'enqueued', -1)
    end
    local function broken_key()
        local types = {[jobs] = 'zset', [kinds] = 'set', [ready] = 'zset', [P .. 'queues'] = 'set', [P .. 'seq'] = 'string'}
        for key, is in pairs(types) do
            -- a user without this right is told less
            local found = redis.pcall('TYPE', key).ok or 'none'
            if found ~= 'none' and (found ~= is or is == 'string' and not string.find(call('GET', key), '^%d+$')) then
                return string.sub(key, #P + 1)
            end
        end
    end
    local key = broken_key()
    if not key then
        -- the fault is another, of rights or of memory: as a table it keeps its code
        local err = not is_sound and seq or type(in_jobs) == 'table' and in_jobs or type(in_kinds) == 'table' and in_kinds
            or type(in_ready) == 'table' and in_ready or in_queues or total
        error({err = type(err) == 'table' and err.err or err})
    end
    return NOTHING_TOLD .. cmsgpack.pack({false, 'the value at ' .. key .. ' is not of the type of this key'})
end
call('HSET', hash, 'head', cmsgpack.pack(seq, queue, kind, job[5], job[6], now), 'body', job[4])
local minute = P .. 'minute|' .. string.format('%.0f', now - now % 60000000)
if try('HINCRBY', minute, queue .. '|' .. kind .. '|enqueued', 1) == 1 then
    call('EXPIRE', minute, 8 * 24 * 3600)
end
local topic = 'queue:' .. queue
call('PUBLISH', string.match(P, '^{([^|}]*)') .. '|news', ask.me .. ' ' .. topic)
-- {true}
local reply = '\145\195'
call('SET', receipt, reply, 'EX', ask.kept)
return struct.pack('>I4', #topic) .. topic .. reply
