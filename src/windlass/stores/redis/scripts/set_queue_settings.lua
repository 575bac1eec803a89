-- parts: asked base lines news gate
-- Write the settings of a queue, {declared, override}, and whether it is paused, in place of ask.before: {declared,
-- override, whether it is paused}. The reply is nil, or what is stored where that is not ask.before: nothing is written
-- then. With ask.notify, "pauses" or the topic of the queue, listeners are notified.
if AWAY then
    return AWAY
end
local key = P .. 'settings|' .. ask.queue
local found = call('HMGET', key, 'declared', 'override', 'revision')
local declared, override = found[1] or '', found[2] or ''
local paused = call('SISMEMBER', P .. 'paused', ask.queue) == 1
if declared ~= ask.before[1] or override ~= ask.before[2] or paused ~= ask.before[3] then
    return array(3) .. bytes(declared) .. bytes(override) .. cmsgpack.pack(paused)
end
local revision = tonumber(found[3] or 0) or 0
if declared ~= ask.declared or override ~= ask.override then
    revision = revision + 1
end
call('SADD', P .. 'queues', ask.queue)
-- a write in any case, so that whoever waits for replicas waits until they have what was there before
call('HSET', key, 'declared', ask.declared, 'override', ask.override, 'revision', int(revision))
call(ask.paused and 'SADD' or 'SREM', P .. 'paused', ask.queue)
if ask.notify then
    tell(ask.notify)
end
finish()
return NIL
