-- parts: asked base damage each
-- Where jobs stand: {id, state, cancel, the token that holds it}; those that are not here are left out. A job that is no hash
-- has no state.
local found = {}

local function glance(id)
    local key = P .. 'job|' .. id
    local job = call('HMGET', key, 'state', 'cancel', 'claim')
    local state = job[1] or call('EXISTS', key) == 1 and 'pending'
    if state then
        local token = nil
        if state == 'running' then
            local done, held_by = pcall(cmsgpack.unpack, job[3])
            token = done and type(held_by) == 'string' and held_by or nil
        end
        found[#found + 1] = array(4) .. cmsgpack.pack(id, state, job[2] == '1', token)
    end
end

each(ask.ids, {}, glance, function(id)
    found[#found + 1] = array(4) .. cmsgpack.pack(id, '', false, nil)
end)
return array(#found) .. table.concat(found)
