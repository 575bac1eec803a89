-- parts: asked base
-- The newest entries first, each packed for itself, so that a damaged one spoils no other.
local found = ask.limit > 0 and call('LRANGE', P .. 'audit', 0, ask.limit - 1) or {}
for at, entry in ipairs(found) do
    found[at] = bytes(entry)
end
return array(#found) .. table.concat(found)
