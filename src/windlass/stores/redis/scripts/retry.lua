-- once: asked base lines news places jobs standing holders holds gate
-- Give dead and cancelled jobs a full new budget, pending now.
if AWAY then
    return AWAY, false
end
local function takes_key_again(job)
    if not job.hold then
        return true
    end
    local held = holder(job.hold[1])
    if held then
        return held[1] == job.id
    end
    if job.hold[3] ~= 'time' then
        take(job.hold, job.id)
    end
    return true
end

local answers = {}
for at, id in ipairs(ask.ids) do
    local job = read_job(id)
    if not job then
        answers[at] = 'not_found'
    elseif job.state ~= 'dead' and job.state ~= 'cancelled' then
        answers[at] = 'wrong_state'
    elseif not takes_key_again(job) then
        answers[at] = 'key_held'
    else
        job.attempt = 0
        wait_until(job, now)
        call('HDEL', job.hash, 'error', 'finished_at', 'result', 'result_codec', 'cancel')
        answers[at] = 'done'
    end
end
finish()
return cmsgpack.pack(answers)
