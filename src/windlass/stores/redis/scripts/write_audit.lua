-- once: asked base
-- Keep what people did, the newest first.
local KEPT = 10000
for _, entry in ipairs(ask.entries) do
    call('LPUSH', P .. 'audit', entry)
end
call('LTRIM', P .. 'audit', 0, KEPT - 1)
return cmsgpack.pack(true)
