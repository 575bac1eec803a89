-- once: asked base lines news places jobs leaving damage each
-- Delete finished jobs. The reply has for each what became of it, or {id, why} where it is damaged, and not in the line of
-- an end.
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

local ENDS = {'succeeded', 'dead', 'cancelled'}

-- delete a damaged job from the lines where it stands
local function delete_damaged(id, why)
    for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
        for _, ended in ipairs(ENDS) do
            local line = P .. 'ended|' .. queue .. '|' .. ended
            if call('ZSCORE', line, id) then
                part(line, id)
                part(P .. 'jobs|' .. queue, id)
                part(P .. 'dead|' .. queue, id)
                call('DEL', job_key(id), P .. 'history|' .. id, P .. 'log|' .. id)
                return 'done'
            end
        end
    end
    return as_damaged(id, why)
end

local answers = {}
each(ask.ids, answers, delete, delete_damaged)
flush()
return cmsgpack.pack(answers)
