-- Where the jobs of this store go, once it was moved: AWAY is the refusal of a script that would begin something new. It is
-- returned before the first write, and after the look for an earlier answer: what was done before the move stays done.
local moved = call('GET', P .. 'moved')
local AWAY = moved and redis.error_reply('STOREMOVED ' .. (cmsgpack.unpack(moved))[1]) or nil
