-- parts: asked base lines places damage each
-- Let claims, {id, token} each, hold for ask.lease from now. The reply is {the new end, for each whether the job was
-- asked to stop, or nil where the token no longer holds or the job is damaged}.
local expires = later(ask.lease)
local score = int(expires)
local answers = {}

local function renew(pair)
    local found = call('HMGET', job_key(pair[1]), 'state', 'claim', 'head', 'cancel')
    if found[1] ~= 'running' or cmsgpack.unpack(found[2]) ~= pair[2] then
        return NIL
    end
    local _, queue = cmsgpack.unpack(found[3])
    assert(#queue > 0, 'its head is damaged')
    join(P .. 'leased|' .. queue, score, pair[1])
    return found[4] and '\195' or '\194'
end

each(ask.claims, answers, renew, function()
    return NIL
end)
flush()
return array(2) .. number(expires) .. array(#answers) .. table.concat(answers)
