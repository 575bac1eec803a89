-- parts: base lines news
-- Stop or start giving claims from a queue.
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
