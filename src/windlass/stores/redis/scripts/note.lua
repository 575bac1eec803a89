-- once: asked base lines places jobs damage each
-- Write progress and log lines of running jobs, {id, token, progress, lines} each, where progress is kept as it comes;
-- the reply tells for each whether the token holds, which none does on a damaged job.
local LOG_LINES_KEPT = 500
local answers = {}
local some_hold = false

local function write(note)
    local job = fence(note[1], note[2])
    if not job then
        return false
    end
    -- sooner than the job itself: the log may be of another type
    local log = P .. 'log|' .. job.id
    for _, line in ipairs(note[4]) do
        call('RPUSH', log, cmsgpack.pack({now, line[1], line[2], job.delivery}))
    end
    if #note[4] > 0 then
        call('LTRIM', log, -LOG_LINES_KEPT, -1)
        call('HSET', job.hash, 'logged', 1)
    end
    if note[3] then
        call('HSET', job.hash, 'progress', note[3])
    end
    some_hold = true
    return true
end

each(ask.notes, answers, write, function()
    return false
end)
return cmsgpack.pack(answers), some_hold
