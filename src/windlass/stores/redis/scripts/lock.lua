-- parts: asked base
-- Take or renew a lock for ask.ttl from now; the reply tells whether the holder has it.
local SPARE = 60000
local key = P .. 'lock|' .. ask.name
local found = call('GET', key)
local lock = found and cmsgpack.unpack(found)
if lock and lock[1] ~= ask.holder and lock[2] > now then
    return cmsgpack.pack(false)
end
-- the time in it is what counts: the expiry only clears it away afterwards
local left = math.min(ask.ttl / 1000 + SPARE, 2^52)
call('SET', key, cmsgpack.pack({ask.holder, later(ask.ttl)}), 'PX', int(left))
return cmsgpack.pack(true)
