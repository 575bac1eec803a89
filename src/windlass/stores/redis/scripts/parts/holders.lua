-- Unique keys. A hold is {name, key, until, hold_for, on_conflict, match_payload, digest}; who holds one is kept as
-- {job id, digest, when time frees it}.
local function is_over(held)
    return held[3] and held[3] <= now
end

local function holder(name)
    local found = call('GET', P .. 'hold|' .. name)
    local held = found and cmsgpack.unpack(found)
    return held and not is_over(held) and held or nil
end

local function holds_it(job)
    local found = call('GET', P .. 'hold|' .. job.hold[1])
    return found and cmsgpack.unpack(found)[1] == job.id
end
