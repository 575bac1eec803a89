-- parts: asked base
-- The values of some keys, nil for each that has none.
local values = {}
for at, key in ipairs(ask.keys) do
    local value = call('HGET', P .. 'kv', key)
    values[at] = value and bytes(value) or NIL
end
return array(#values) .. table.concat(values)
