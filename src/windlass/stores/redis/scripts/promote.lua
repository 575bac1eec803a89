-- once: asked base lines news places jobs
-- Make scheduled jobs that have come due pending; the reply is how many.
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
return cmsgpack.pack(done), done > 0
