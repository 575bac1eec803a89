-- parts: asked base oldest
-- The pending jobs of all queues: {queue, kind ('' for raw jobs), how many, the earliest time among them}, in no order.
local found = {}
for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. queue)) do
        local line = P .. 'ready|' .. queue .. '|' .. kind
        local pending = call('ZCARD', line)
        if pending > 0 then
            found[#found + 1] = cmsgpack.pack({queue, kind, pending, oldest(line)})
        end
    end
end
return array(#found) .. table.concat(found)
