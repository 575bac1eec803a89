-- parts: asked base damage
-- The settings of those of ask.queues that have any or are paused: {queue, declared, override, whether it is paused}. Those
-- that are kept under a key of another type are nil.
local found = {}
for _, queue in ipairs(ask.queues) do
    local is_sound, layers = pcall(call, 'HMGET', P .. 'settings|' .. queue, 'declared', 'override')
    if not is_sound then
        damage(layers)
        layers = {}
    end
    local paused = call('SISMEMBER', P .. 'paused', queue) == 1
    if not is_sound or layers[1] or layers[2] or paused then
        found[#found + 1] = array(4) .. cmsgpack.pack(queue)
            .. (is_sound and bytes(layers[1] or '') .. bytes(layers[2] or '') or NIL .. NIL) .. cmsgpack.pack(paused)
    end
end
return array(#found) .. table.concat(found)
