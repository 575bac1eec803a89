-- parts: asked base places fields damage
-- The stored records of jobs as they are, however damaged, each field for itself: for each {the queue whose line it stands in,
-- its number there as text, the state of the other line that it stands in, when its lease ends as text, the fields of its hash or nil
-- where it is none, history, log}, both nil where they are no lists; nil for one that is not here.
local ENDS = {'succeeded', 'dead', 'cancelled'}

local function framed(members)
    local found = {}
    for at, member in ipairs(members) do
        found[at] = bytes(member)
    end
    return array(#found) .. table.concat(found)
end

-- what `look` finds, or nil where a key is of another type
local function found_by(look, ...)
    local done, found = pcall(look, ...)
    if not done then
        damage(found)
        return nil
    end
    return found
end

local function score(line, id)
    return found_by(call, 'ZSCORE', P .. line, id)
end

local function standing(id)
    for _, queue in ipairs(found_by(call, 'SMEMBERS', P .. 'queues') or {}) do
        local seq = score('jobs|' .. queue, id)
        local lease = score('leased|' .. queue, id)
        local state = lease and 'running' or score('due|' .. queue, id) and 'scheduled'
        for _, ended in ipairs(ENDS) do
            state = state or score('ended|' .. queue .. '|' .. ended, id) and ended
        end
        if seq or state then
            return queue, seq, state or 'pending', lease
        end
    end
    return nil
end

local function members(key)
    local found = found_by(call, 'LRANGE', key, 0, -1)
    return found and framed(found) or NIL
end

local function record(id)
    if call('EXISTS', job_key(id)) == 0 then
        return NIL
    end
    local queue, seq, state, lease = standing(id)
    local flat = found_by(call, 'HGETALL', job_key(id))
    return array(7)
        .. (queue and bytes(queue) or NIL) .. packed(seq) .. packed(state) .. packed(lease) .. (flat and framed(flat) or NIL)
        .. members(P .. 'history|' .. id) .. members(P .. 'log|' .. id)
end

local found = {}
for at, id in ipairs(ask.ids) do
    found[at] = record(id)
end
return array(#found) .. table.concat(found)
