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
