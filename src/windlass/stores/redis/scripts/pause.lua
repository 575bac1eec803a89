-- parts: asked base lines news gate
-- Stop or start giving claims from a queue.
if AWAY then
    return AWAY
end
call('SADD', P .. 'queues', ask.queue)
if ask.paused then
    call('SADD', P .. 'paused', ask.queue)
    tell('pauses')
else
    call('SREM', P .. 'paused', ask.queue)
    tell('queue:' .. ask.queue)
end
finish()
return cmsgpack.pack(true)
