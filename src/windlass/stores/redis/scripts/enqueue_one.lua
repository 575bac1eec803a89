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
    local reply = cmsgpack.pack({true, {{id, false}}})
    call('SET', receipt, reply, 'EX', ask.kept)
    return NOTHING_TOLD .. reply
end

local seq = next_numbers(1)
call('HSET', hash, 'head', cmsgpack.pack(seq, queue, kind, job[5], job[6], now), 'body', job[4])
call('ZADD', P .. 'jobs|' .. queue, seq, id)
call('SADD', P .. 'kinds|' .. queue, kind)
call('ZADD', P .. 'ready|' .. queue .. '|' .. kind, 0, struct.pack('>I4I8I8', job[5], now, seq) .. id)
if call('HINCRBY', P .. 'totals|' .. queue, 'enqueued', 1) == 1 then
    call('SADD', P .. 'queues', queue)
end
local minute = P .. 'minute|' .. string.format('%.0f', now - now % 60000000)
if call('HINCRBY', minute, queue .. '|' .. kind .. '|enqueued', 1) == 1 then
    call('EXPIRE', minute, 8 * 24 * 3600)
end
local topic = 'queue:' .. queue
call('PUBLISH', string.match(P, '^{([^|}]*)') .. '|news', ask.me .. ' ' .. topic)
-- {true}
local reply = '\145\195'
call('SET', receipt, reply, 'EX', ask.kept)
return struct.pack('>I4', #topic) .. topic .. reply
