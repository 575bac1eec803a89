-- parts: asked base
-- Write down with which queue a schedule is kept, unless it is kept with one; the reply is the queue it is kept with.
local at = call('HGET', P .. 'schedules_at', ask.id) or ask.queue
-- a write in any case, so that whoever waits for replicas waits until they have what was there before
call('HSET', P .. 'schedules_at', ask.id, at)
return cmsgpack.pack(at)
