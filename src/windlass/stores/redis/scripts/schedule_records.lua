-- parts: asked base framed damage schedules
-- The fields of schedules as they are, however damaged; nil for what is no hash.
local found = {}
for at, id in ipairs(ask.ids) do
    local done, flat = pcall(call, 'HGETALL', schedule_key(id))
    if done then
        for part = 1, #flat do
            flat[part] = bytes(flat[part])
        end
        found[at] = array(#flat) .. table.concat(flat)
    else
        damage(flat)
        found[at] = NIL
    end
end
return array(#found) .. table.concat(found)
