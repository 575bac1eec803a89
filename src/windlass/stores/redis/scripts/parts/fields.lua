-- the fields of a hash by name: for those who want nearly all of them, and of which most are not there
local function fields_of(hash)
    local found = {}
    local flat = call('HGETALL', hash)
    for at = 1, #flat, 2 do
        found[flat[at]] = flat[at + 1]
    end
    return found
end
