-- parts: asked base
-- Write down that a schedule is no longer kept with a queue.
if call('HGET', P .. 'schedules_at', ask.id) == ask.queue then
    call('HDEL', P .. 'schedules_at', ask.id)
end
return cmsgpack.pack(true)
