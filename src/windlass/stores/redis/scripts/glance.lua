-- parts: asked base
-- Where jobs stand: {id, state, cancel, the token that holds it}; those that are not here are left out.
local found = {}
for _, id in ipairs(ask.ids) do
    local key = P .. 'job|' .. id
    local job = call('HMGET', key, 'state', 'cancel', 'claim')
    local state = job[1] or call('EXISTS', key) == 1 and 'pending'
    if state then
        local token = nil
        if state == 'running' then
            token = cmsgpack.unpack(job[3])
        end
        found[#found + 1] = array(4) .. cmsgpack.pack(id, state, job[2] == '1', token)
    end
end
return array(#found) .. table.concat(found)
