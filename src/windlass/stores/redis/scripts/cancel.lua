-- once: asked base lines news places jobs standing holders holds ends gate
-- End waiting jobs, {id} by {id}, and flag running ones; ask.keep tells by queue whether a cancelled job is kept.
if AWAY then
    return AWAY, false
end
local answers = {}
for at, id in ipairs(ask.ids) do
    local job = read_job(id)
    if not job or is_finished(job) then
        answers[at] = 'not_found'
    elseif job.state == 'running' then
        call('HSET', job.hash, 'cancel', 1)
        tell('flags')
        answers[at] = 'requested'
    else
        local keep = ask.keep[job.queue]
        if keep == nil then
            keep = ask.keep['']
        end
        end_job(job, 'cancelled', keep)
        answers[at] = 'removed'
    end
end
finish()
return cmsgpack.pack(answers)
