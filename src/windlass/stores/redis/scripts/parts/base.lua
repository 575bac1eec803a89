local LATEST = 253402300799999999

local function later(span)
    return math.min(now + span, LATEST)
end

-- a whole number as text: Lua's own way loses digits of a time
local function int(number)
    return string.format('%.0f', number)
end

-- The reply is packed too. What is kept packed goes into it as it is; cmsgpack makes text of every string, so bytes are
-- packed here, and arrays whose members may be missing.
local NIL = '\192'

-- begins a head, which is kept without
local OF_SIX = '\150'

local function array(members)
    return struct.pack('>BI4', 0xdd, members)
end

local function bytes(value)
    return struct.pack('>BI4', 0xc6, #value) .. value
end

local function packed(value)
    return value and cmsgpack.pack(value) or NIL
end

local function number(text)
    return text and cmsgpack.pack(tonumber(text)) or NIL
end

-- What stands beside a history, as {delivery, module of the failure, when an operator retried the job after it}: earlier
-- releases read histories whose members are no longer than they know. What is damaged of it is left out.
local function details_in(kept)
    local is_sound, found = pcall(cmsgpack.unpack, kept or '')
    local details = {}
    for _, detail in ipairs(is_sound and type(found) == 'table' and found or {}) do
        local delivery, module, at = unpack(type(detail) == 'table' and detail or {})
        if type(delivery) == 'number' and delivery % 1 == 0 then
            local is_time = type(at) == 'number' and at % 1 == 0 and at >= 0 and at <= LATEST
            details[#details + 1] = {delivery, type(module) == 'string' and module, is_time and at}
        end
    end
    return details
end

-- Add to a count; return whether it is the first of its kind. One that is damaged keeps what it is of from nothing: it stays
-- as it is, and is left out where it is shown.
local function is_first(key, field, times)
    local counted = redis.pcall('HINCRBY', key, field, times)
    if type(counted) == 'table' and not string.find(counted.err, 'WRONGTYPE') and not string.find(counted.err, 'integer')
        and not string.find(counted.err, 'overflow') then
        error(counted)
    end
    return counted == times
end
