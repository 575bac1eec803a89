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

-- Whether a job holds its key. Whoever is going to free it asks before the first write of the job, since this fails where
-- the holder is damaged; it is asked once.
local function holds_it(job)
    if job.holds == nil then
        local found = call('GET', P .. 'hold|' .. job.hold[1])
        job.holds = found and cmsgpack.unpack(found)[1] == job.id
    end
    return job.holds
end
