-- once: asked base lines news places jobs standing holders holds gate damage each
-- Give dead and cancelled jobs a full new budget, pending now. The reply has for each what became of it, or {id, why}
-- where it is damaged.
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

local function retry(id)
    local job = read_job(id)
    if not job then
        return 'not_found'
    elseif job.state ~= 'dead' and job.state ~= 'cancelled' then
        return 'wrong_state'
    elseif not takes_key_again(job) then
        return 'key_held'
    end
    job.attempt = 0
    wait_until(job, now)
    call('HDEL', job.hash, 'error', 'finished_at', 'result', 'result_codec', 'cancel')
    return 'done'
end

local answers = {}
each(ask.ids, answers, retry, as_damaged)
finish()
return cmsgpack.pack(answers)
