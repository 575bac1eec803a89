-- Where queues are spread there is no common counter: numbers go by the milliseconds since 2024, never back, and end in the
-- number of the queue, so that those of two queues never meet and stand nearly in the order of time.
local QUEUES = 1024
local EPOCH = 1704067200000000

-- give out the next numbers of enqueues; return the first, and what is between two of them
local function next_numbers(jobs)
    if not ask.queue_number then
        return call('INCRBY', P .. 'seq', jobs) - jobs + 1, 1
    end
    local kept = tonumber(call('GET', P .. 'seq') or 0)
    assert(kept, 'seq is not an integer')
    local last = math.max(kept, math.floor((now - EPOCH) / 1000))
    call('SET', P .. 'seq', string.format('%.0f', last + jobs))
    return (last + 1) * QUEUES + ask.queue_number, QUEUES
end
