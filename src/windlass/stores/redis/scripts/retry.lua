-- once: asked base lines news places jobs steps leaving sound_lines deliveries holders holds gate damage each
-- Give dead and cancelled jobs a full new budget, pending now. The reply has for each what became of it, or {id, why}
-- where it is damaged.
if AWAY then
    return AWAY, false
end
local function takes_key_again(job)
    if not job.hold then
        return true
    end
    local held, why = holder(job.hold[1])
    assert(not why, why)
    if held then
        return held[1] == job.id
    end
    if job.hold[3] ~= 'time' then
        take(job.hold, job.id)
    end
    return true
end

-- Note on the last delivery that the job is retried. One that was never claimed gets a delivery of the number 0 for it, which
-- tells how it had ended; `logged` says that something is kept beside the job.
local function note_retry(job)
    local history = P .. 'history|' .. job.id
    if job.delivery == 0 and call('EXISTS', history) == 0 then
        local ended_at = time_or(tonumber(call('HGET', job.hash, 'finished_at') or ''), now)
        local outcome = job.state == 'cancelled' and 'cancelled' or 'failed'
        call('RPUSH', history, array(7) .. cmsgpack.pack(0, 0, ended_at, ended_at, nil, outcome) .. NIL)
        call('HSET', job.hash, 'logged', '1')
    end
    add_detail(job, nil, now)
end

local function retry(id)
    local job = read_job(id)
    if not job then
        return 'not_found'
    elseif job.state ~= 'dead' and job.state ~= 'cancelled' then
        return 'wrong_state'
    elseif not can_end(job, job.state) or not can_wait(job) then
        return 'wrong_state'
    elseif not takes_key_again(job) then
        return 'key_held'
    end
    note_retry(job)
    leave(job)
    job.attempt = 0
    starts_waiting(job, now)
    tell('queue:' .. job.queue)
    call('HDEL', job.hash, 'error', 'finished_at', 'result', 'result_codec', 'cancel')
    return 'done'
end

local answers = {}
each(ask.ids, answers, retry, as_damaged)
finish()
raise_if_broken()
return cmsgpack.pack(answers)
