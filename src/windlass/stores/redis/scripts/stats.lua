-- parts: asked base oldest
-- What queues hold: {queue, paused, scheduled, pending, running, succeeded, dead, cancelled, oldest, totals}, in no order.
local TOTALS = {'enqueued', 'succeeded', 'dead', 'cancelled', 'retried', 'rescued'}
local MOST = 2^53

local function stats(queue)
    local pending, earliest = 0, nil
    for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. queue)) do
        local line = P .. 'ready|' .. queue .. '|' .. kind
        pending = pending + call('ZCARD', line)
        local first = oldest(line)
        earliest = first and math.min(earliest or first, first) or earliest
    end
    local counted = {}
    for at, total in ipairs(call('HMGET', P .. 'totals|' .. queue, unpack(TOTALS))) do
        local times = tonumber(total or 0)
        -- false where it is no whole number
        counted[at] = times and times % 1 == 0 and math.abs(times) <= MOST and times or false
    end
    local ended = P .. 'ended|' .. queue
    return array(10)
        .. cmsgpack.pack(queue) .. (call('SISMEMBER', P .. 'paused', queue) == 1 and '\195' or '\194')
        .. number(call('ZCARD', P .. 'due|' .. queue)) .. number(pending) .. number(call('ZCARD', P .. 'leased|' .. queue))
        .. number(call('ZCARD', ended .. '|succeeded')) .. number(call('ZCARD', ended .. '|dead'))
        .. number(call('ZCARD', ended .. '|cancelled')) .. number(earliest) .. cmsgpack.pack(counted)
end

local found = {}
for _, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    if call('SISMEMBER', P .. 'queues', queue) == 1 then
        found[#found + 1] = stats(queue)
    end
end
return array(#found) .. table.concat(found)
