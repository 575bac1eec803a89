-- parts: asked base lines news gate
-- Stop or start giving claims from a queue.
if AWAY then
    return AWAY
end
call('SADD', P .. 'queues', ask.queue)
-- One of the two is a write in any case, so that whoever waits for replicas waits until they have what was there before.
if ask.paused then
    call('SREM', P .. 'paused', ask.queue)
    call('SADD', P .. 'paused', ask.queue)
    tell('pauses')
else
    call('SADD', P .. 'paused', ask.queue)
    call('SREM', P .. 'paused', ask.queue)
    tell('queue:' .. ask.queue)
end
finish()
return cmsgpack.pack(true)
