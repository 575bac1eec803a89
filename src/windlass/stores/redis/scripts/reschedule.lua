-- once: asked base lines news places jobs standing gate
-- Let waiting jobs run at ask.run_at, or now when there is none or it is past.
if AWAY then
    return AWAY, false
end
local answers = {}
for at, id in ipairs(ask.ids) do
    local job = read_job(id)
    if not job then
        answers[at] = 'not_found'
    elseif not is_waiting(job) then
        answers[at] = 'wrong_state'
    else
        wait_until(job, ask.run_at and math.max(tonumber(ask.run_at), now) or now)
        answers[at] = 'done'
    end
end
finish()
return cmsgpack.pack(answers)
