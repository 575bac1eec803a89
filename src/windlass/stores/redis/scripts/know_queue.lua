-- parts: base
-- Write down the name of a queue that is kept elsewhere; the reply is its number, which it keeps.
call('SADD', P .. 'queues', ask.queue)
local number_of = call('HGET', P .. 'queue_numbers', ask.queue)
if not number_of then
    number_of = call('HLEN', P .. 'queue_numbers') % ask.most
    call('HSET', P .. 'queue_numbers', ask.queue, number_of)
end
return number(number_of)
