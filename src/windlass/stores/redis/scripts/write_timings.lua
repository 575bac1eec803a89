-- once: asked base
-- Add up how many attempts took how long: {minute, queue|kind|what|range, count} each.
local KEPT = 8 * 24 * 3600 * 1000000
for _, row in ipairs(ask.timings) do
    local key = P .. 'timing|' .. int(row[1])
    if is_first(key, row[2], row[3]) then
        -- The first of its sort, perhaps of its minute too. One that is over by then is gone at once: nobody could read it.
        call('EXPIRE', key, int(math.ceil((row[1] + KEPT - now) / 1000000)))
    end
end
return cmsgpack.pack(true)
