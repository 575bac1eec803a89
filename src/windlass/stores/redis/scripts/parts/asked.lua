-- Every script begins with this. KEYS[1] is the prefix of all keys of a store, ARGV[1] what is asked for, packed.
local P = KEYS[1]
local ask = cmsgpack.unpack(ARGV[1])
local call = redis.call

local now = ask.now
if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
end
