-- parts: asked base lines places
-- Let claims, {id, token} each, hold for ask.lease from now. The reply is {the new end, for each whether the job was
-- asked to stop, or nil where the token no longer holds}.
local expires = later(ask.lease)
local answers = {}
for at, pair in ipairs(ask.claims) do
    local found = call('HMGET', job_key(pair[1]), 'state', 'claim', 'head', 'cancel')
    if found[1] == 'running' and cmsgpack.unpack(found[2]) == pair[2] then
        local _, queue = cmsgpack.unpack(found[3])
        call('ZADD', P .. 'leased|' .. queue, int(expires), pair[1])
        answers[at] = found[4] and '\195' or '\194'
    else
        answers[at] = NIL
    end
end
return array(2) .. number(expires) .. array(#answers) .. table.concat(answers)
