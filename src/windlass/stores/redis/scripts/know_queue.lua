-- parts: asked base gate
-- Write down the name of a queue that is kept elsewhere; the reply is its number, which it keeps. Where nothing new
-- begins, no queue does either.
if AWAY and call('SISMEMBER', P .. 'queues', ask.queue) == 0 then
    return AWAY
end
call('SADD', P .. 'queues', ask.queue)
local number_of = call('HGET', P .. 'queue_numbers', ask.queue)
if not number_of then
    number_of = call('HLEN', P .. 'queue_numbers') % ask.most
    call('HSET', P .. 'queue_numbers', ask.queue, number_of)
end
return number(number_of)
