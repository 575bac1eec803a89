-- parts: asked base
-- Those of ask.queues that are paused.
local found = {}
for _, queue in ipairs(ask.queues) do
    if call('SISMEMBER', P .. 'paused', queue) == 1 then
        found[#found + 1] = queue
    end
end
return cmsgpack.pack(found)
