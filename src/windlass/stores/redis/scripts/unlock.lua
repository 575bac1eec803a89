-- once: asked base lines news
-- Let go of a lock; the reply tells whether the holder still had it.
local key = P .. 'lock|' .. ask.name
local found = call('GET', key)
local lock = found and cmsgpack.unpack(found)
if not lock or lock[1] ~= ask.holder or lock[2] <= now then
    return cmsgpack.pack(false)
end
call('DEL', key)
tell('lock:' .. ask.name)
finish()
return cmsgpack.pack(true)
