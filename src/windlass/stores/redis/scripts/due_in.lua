-- parts: asked base
-- How long it is until the next scheduled job of these queues comes due, or nil; paused queues do not count.
local earliest = nil
for _, queue in ipairs(ask.queues) do
    local first = tonumber(call('ZRANGE', P .. 'due|' .. queue, 0, 0, 'WITHSCORES')[2])
    if first and call('SISMEMBER', P .. 'paused', queue) == 0 then
        earliest = math.min(earliest or math.huge, first)
    end
end
return earliest and number(math.max(earliest - now, 0)) or NIL
