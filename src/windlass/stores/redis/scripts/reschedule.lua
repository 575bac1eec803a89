-- once: asked base lines news places jobs steps leaving sound_lines gate damage each
-- Let waiting jobs run at ask.run_at, or now when there is none or it is past. The reply has for each what became of it, or
-- {id, why} where it is damaged.
if AWAY then
    return AWAY, false
end
local run_at = ask.run_at and math.max(tonumber(ask.run_at), now) or now

local function reschedule(id)
    local job = read_job(id)
    if not job then
        return 'not_found'
    elseif not is_waiting(job) or not can_wait(job) then
        return 'wrong_state'
    end
    leave(job)
    starts_waiting(job, run_at)
    tell('queue:' .. job.queue)
    return 'done'
end

local answers = {}
each(ask.ids, answers, reschedule, as_damaged)
finish()
raise_if_broken()
return cmsgpack.pack(answers)
