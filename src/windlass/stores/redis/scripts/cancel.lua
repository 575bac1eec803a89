-- once: asked base lines news places jobs leaving sound_lines holders holds ends gate damage each
-- End waiting jobs and flag running ones; ask.keep tells by queue whether a cancelled job is kept. The reply has for each
-- what became of it, or {id, why} where it is damaged.
if AWAY then
    return AWAY, false
end

local function cancel(id)
    local job = read_job(id)
    if not job or is_finished(job) then
        return 'not_found'
    elseif job.state == 'running' then
        call('HSET', job.hash, 'cancel', 1)
        tell('flags')
        return 'requested'
    end
    local keep = ask.keep[job.queue]
    if keep == nil then
        keep = ask.keep['']
    end
    if keep and not can_end(job, 'cancelled') then
        return 'not_found'
    end
    leave(job)
    ends(job, 'cancelled', keep)
    return 'removed'
end

local answers = {}
each(ask.ids, answers, cancel, as_damaged)
finish()
raise_if_broken()
return cmsgpack.pack(answers)
