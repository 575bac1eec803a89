-- once: asked base lines news places jobs damage each drain promoting
-- Make scheduled jobs that have come due pending; the reply is {how many, {id, why} for each that is damaged}.
local done = 0
for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    local promoted = promote(queue, ask.limit - done)
    if promoted > 0 then
        tell('queue:' .. queue)
        done = done + promoted
    end
    if done >= ask.limit then
        break
    end
end
finish()
return cmsgpack.pack({done, damaged}), done > 0
