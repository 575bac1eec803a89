-- once: asked base lines news places steps fields jobs body holders holds ends damage each drain promoting aside
-- Make scheduled jobs that have come due pending; the reply is {how many, {id, why} for each that was damaged, and set aside}.
-- After ask.most_aside of these the caller asks again, so that others are served meanwhile.
local done = 0
local damaged = {}

local function refuse(queue, id, err)
    damaged[#damaged + 1] = {id, set_aside(id, queue, nil, nil, err)}
end

for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    local promoted = promote(queue, ask.limit - done, refuse, ask.most_aside - #damaged)
    if promoted > 0 then
        tell('queue:' .. queue)
        done = done + promoted
    end
    if done >= ask.limit or #damaged >= ask.most_aside then
        break
    end
end
finish()
return cmsgpack.pack({done, damaged}), done + #damaged > 0
