-- once: asked base lines news places jobs standing
-- Delete finished jobs.
local answers = {}
for at, id in ipairs(ask.ids) do
    local job = read_job(id)
    if not job then
        answers[at] = 'not_found'
    elseif not is_finished(job) then
        answers[at] = 'wrong_state'
    else
        remove_job(job)
        answers[at] = 'done'
    end
end
flush()
return cmsgpack.pack(answers)
