-- parts: asked base
-- Write down that a schedule is no longer kept with a queue.
local at = call('HGET', P .. 'schedules_at', ask.id)
if not at or at == ask.queue then
    -- a write in any case, so that whoever waits for replicas waits until they know too
    call('HSET', P .. 'schedules_at', ask.id, ask.queue)
    call('HDEL', P .. 'schedules_at', ask.id)
end
return cmsgpack.pack(true)
