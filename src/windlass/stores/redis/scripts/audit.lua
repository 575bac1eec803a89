-- parts: asked base
-- The newest entries first.
local found = ask.limit > 0 and call('LRANGE', P .. 'audit', 0, ask.limit - 1) or {}
return array(#found) .. table.concat(found)
