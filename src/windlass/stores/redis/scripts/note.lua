-- once: asked base lines places jobs
-- Write progress and log lines of running jobs, {id, token, progress, lines} each, where progress is kept as it comes;
-- the reply tells for each whether the token holds.
local LOG_LINES_KEPT = 500
local answers = {}
local some_hold = false
for at, note in ipairs(ask.notes) do
    local job = read_job(note[1])
    answers[at] = is_running(job, note[2]) or false
    if answers[at] then
        some_hold = true
        if note[3] then
            call('HSET', job.hash, 'progress', note[3])
        end
        local log = P .. 'log|' .. job.id
        for _, line in ipairs(note[4]) do
            call('RPUSH', log, cmsgpack.pack({now, line[1], line[2], job.delivery}))
        end
        if #note[4] > 0 then
            call('LTRIM', log, -LOG_LINES_KEPT, -1)
            call('HSET', job.hash, 'logged', 1)
        end
    end
end
return cmsgpack.pack(answers), some_hold
