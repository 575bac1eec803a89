-- once: asked base lines news places jobs standing damage each
-- Delete finished jobs. The reply has for each what became of it, or {id, why} where it is damaged.
local function delete(id)
    local job = read_job(id)
    if not job then
        return 'not_found'
    elseif not is_finished(job) then
        return 'wrong_state'
    end
    remove_job(job)
    return 'done'
end

local answers = {}
each(ask.ids, answers, delete, as_damaged)
flush()
return cmsgpack.pack(answers)
