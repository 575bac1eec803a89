-- parts: asked base
-- Up to ask.limit pairs from the key ask.from on, excluding it with ask.past, in the order of their bytes. Where the
-- prefix ends is for the caller to see.
local from = (ask.past and '(' or '[') .. ask.from
local keys = call('ZRANGE', P .. 'kv_keys', from, '+', 'BYLEX', 'LIMIT', 0, ask.limit)
local found = {}
for at, key in ipairs(keys) do
    found[at] = array(2) .. bytes(key) .. bytes(call('HGET', P .. 'kv', key))
end
return array(#found) .. table.concat(found)
