-- What a job carries, as it is kept: the codec, a text, and the payload, bytes, each behind how long it is. cmsgpack knows
-- texts alone, and no bytes, so this is read by hand.

-- where in a body the kind of bytes stands that the payload is, with how long it is behind that
local function payload_at(body)
    local size = string.byte(body, 2)
    return size < 0xc0 and 3 + size - 0xa0 or 4 + string.byte(body, 3)
end

-- where in a body the payload begins
local function payload_from(body)
    local at = payload_at(body)
    return at + 1 + 2 ^ (string.byte(body, at) - 0xc4)
end

-- whether a body is as long as it says, told without reading the payload
local function is_whole(body)
    local at = payload_at(body)
    local kind, first, second, third, fourth = string.byte(body, at, at + 4)
    if string.byte(body) ~= 0x92 then
        return false
    elseif kind == 0xc4 then
        return #body == at + 1 + first
    elseif kind == 0xc5 then
        return #body == at + 2 + 256 * first + second
    end
    return kind == 0xc6 and #body == at + 4 + 256 * (256 * (256 * first + second) + third) + fourth
end
