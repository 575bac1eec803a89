-- parts: asked base gate
-- Write down the name of a queue that is kept elsewhere; the reply is its number, which it keeps. Where nothing new
-- begins, no queue does either. One without a number here may have jobs that have one, so it is given none before ask.sure:
-- until then the reply is nil. Then it has ask.number, or one that no other has, while there are any.
if AWAY and call('SISMEMBER', P .. 'queues', ask.queue) == 0 then
    return AWAY
end
local number_of = call('HGET', P .. 'queue_numbers', ask.queue)
if not number_of and not ask.sure then
    return NIL
end

local function free_number()
    local taken = {}
    local flat = call('HGETALL', P .. 'queue_numbers')
    for at = 2, #flat, 2 do
        taken[tonumber(flat[at])] = true
    end
    local first = #flat / 2
    for at = first, first + ask.most - 1 do
        if not taken[at % ask.most] then
            return at % ask.most
        end
    end
    return first % ask.most
end

call('SADD', P .. 'queues', ask.queue)
if not number_of then
    number_of = ask.number or free_number()
end
-- a write in any case, so that whoever waits for replicas waits until they have what was there before
call('HSET', P .. 'queue_numbers', ask.queue, number_of)
return number(number_of)
