-- parts: asked base lines places jobs damage
-- How long it is until the next scheduled job of these queues comes due, or nil; paused queues do not count, nor does a job
-- that is due and damaged: it stays in line, and nobody is to look for it again and again.
local function may_leave(id)
    local done, err = pcall(read_job, id)
    return done or not damage(err)
end

local function first_of(queue)
    local at = 0
    while true do
        local found = call('ZRANGE', P .. 'due|' .. queue, at, at, 'WITHSCORES')
        local due = tonumber(found[2])
        if not due or due > now or may_leave(found[1]) then
            return due
        end
        at = at + 1
    end
end

local earliest = nil
for _, queue in ipairs(ask.queues) do
    local first = first_of(queue)
    if first and call('SISMEMBER', P .. 'paused', queue) == 0 then
        earliest = math.min(earliest or math.huge, first)
    end
end
return earliest and number(math.max(earliest - now, 0)) or NIL
