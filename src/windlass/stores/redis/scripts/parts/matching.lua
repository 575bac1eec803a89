-- Whether a job is one of those that ask wants. What it carries is read for that when it is asked for, and last: it may be
-- large. Nearly all that are looked at do not match, so what is cheap to know comes first, and nothing is unpacked that
-- nobody asks for.
local function holds_text(text, part)
    return part and string.find(part, text, 1, true)
end

local function matches_head(id, head, key, last_error, tenant)
    local _, _, kind, _, _, created_at = cmsgpack.unpack(head)
    return (not ask.kind or ask.kind == kind)
        and (not ask.since or ask.since <= created_at)
        and (not ask.until_ or created_at < ask.until_)
        and (not ask.text or holds_text(ask.text, id) or holds_text(ask.text, kind) or holds_text(ask.text, key)
            or holds_text(ask.text, tenant) or holds_text(ask.text, last_error))
end

-- what is packed has every text as it is, among others
local function may_hold_text(id, found)
    for at = 1, 4 do
        if holds_text(ask.text, found[at]) then
            return true
        end
    end
    return holds_text(ask.text, id)
end

local function is_of_type(last_error)
    return last_error and (last_error == ask.error_type
        or string.sub(last_error, 1, #ask.error_type + 1) == ask.error_type .. ':')
end

-- bytes that were read of that
local carried = 0

local function carries_text(hash)
    local body = call('HGET', hash, 'body')
    carried = carried + #body
    return string.find(body, ask.payload_text, payload_from(body), true)
end

local function matches(id)
    local hash = P .. 'job|' .. id
    if ask.state and (call('HGET', hash, 'state') or 'pending') ~= ask.state then
        return false
    end
    local found = call('HMGET', hash, 'head', 'more', 'error', 'key')
    local head, more, last_error, key = found[1], found[2], found[3], found[4]
    -- a server that is allowed to forget may have forgotten it, but never one field alone
    if not head and call('EXISTS', hash) == 0 then
        return false
    elseif ask.text and not may_hold_text(id, found) then
        return false
    elseif ask.error and not holds_text(ask.error, last_error) or ask.error_type and not is_of_type(last_error) then
        return false
    elseif ask.unique_key and ask.unique_key ~= key then
        return false
    end
    more = more and (ask.tenant or ask.schedule_id or ask.parent_id or ask.text) and cmsgpack.unpack(more) or {}
    return (not ask.tenant or ask.tenant == more[2])
        and (not ask.parent_id or ask.parent_id == more[3])
        and (not ask.schedule_id or ask.schedule_id == more[4])
        and matches_head(id, head, key, last_error, more[2])
        and (not ask.payload_text or carries_text(hash))
end

-- Whether a damaged job is one of those that ask wants: what cannot be read of it matches nothing that is asked for.
local function damaged_matches(id)
    local done, found = pcall(fields_of, P .. 'job|' .. id)
    if not done then
        damage(found)
        found = {}
    end
    local function unpacked(text)
        local values = {pcall(cmsgpack.unpack, text)}
        return values[1] and values or {}
    end
    local head = unpacked(found.head)
    local kind, created_at = head[4], head[7]
    local more = unpacked(found.more)[2]
    more = type(more) == 'table' and more or {}
    local function holds(part)
        return type(part) == 'string' and holds_text(ask.text, part)
    end
    local function in_payload()
        return found.body and string.find(found.body, ask.payload_text, 1, true)
    end
    local is_in_time = type(created_at) == 'number'
        and (not ask.since or ask.since <= created_at) and (not ask.until_ or created_at < ask.until_)
    -- a job whose state cannot be read is looked for in the lines of the states
    return (not ask.state or not done or (found.state or 'pending') == ask.state)
        and (not ask.kind or ask.kind == kind)
        and (not (ask.since or ask.until_) or is_in_time)
        and (not ask.tenant or ask.tenant == more[2])
        and (not ask.parent_id or ask.parent_id == more[3])
        and (not ask.schedule_id or ask.schedule_id == more[4])
        and (not ask.unique_key or ask.unique_key == found.key)
        and (not ask.error or found.error and holds_text(ask.error, found.error))
        and (not ask.error_type or found.error and is_of_type(found.error))
        and (not ask.text or holds(id) or holds(kind) or holds(found.key) or holds(more[2]) or holds(found.error))
        and (not ask.payload_text or in_payload())
end
