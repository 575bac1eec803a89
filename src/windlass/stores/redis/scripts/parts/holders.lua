-- Unique keys. A hold is {name, key, until, hold_for, on_conflict, match_payload, digest}; who holds one is kept as
-- {job id, digest, when time frees it}.
local function is_over(held)
    return held[3] and held[3] <= now
end

local ENDED = {succeeded = true, dead = true, cancelled = true}

-- Whether the job of a holder can still end, and free the key: one that was set aside may have lost what tells which key it has.
local function can_free(id)
    local done, state = pcall(call, 'HGET', P .. 'job|' .. id, 'state')
    return done and not ENDED[state]
end

-- return what is stored of a key, or nil; where that cannot be read, nil and what is damaged
local function stored_holder(name)
    local key = P .. 'hold|' .. name
    local found = redis.pcall('GET', key)
    if not found then
        return nil
    elseif type(found) == 'table' then
        if not string.find(found.err, '^%-?WRONGTYPE') then
            error(found)
        end
        return nil, 'hold|' .. name .. ' is not a text'
    end
    local done, held = pcall(cmsgpack.unpack, found)
    if done and type(held) == 'table' and type(held[1]) == 'string' and type(held[2]) == 'string'
        and (not held[3] or type(held[3]) == 'number') then
        return held
    end
    return nil, 'hold|' .. name .. ' cannot be unpacked'
end

-- Return who holds a key, or nil; nil and what is damaged where that cannot be told.
local function holder(name)
    local held, why = stored_holder(name)
    if not held or is_over(held) or not held[3] and not can_free(held[1]) then
        return nil, why
    end
    return held
end

-- Whether a job holds its key. A damaged holder is taken for that of the job which shows the key: no other can have it,
-- unless time alone frees it.
local function holds_it(job)
    local held, why = stored_holder(job.hold[1])
    if why then
        return job.key ~= nil and job.hold[3] ~= 'time'
    end
    return held and held[1] == job.id
end
