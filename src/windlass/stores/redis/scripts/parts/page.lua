-- A page of the jobs that match, from whatever gives them one by one.
local queues = ask.queues or call('SMEMBERS', P .. 'queues')

-- the lines of these queues that have their jobs in the order of their enqueue
local function lines_in_order()
    local lines = {}
    for at, queue in ipairs(queues) do
        lines[at] = P .. (ask.state == 'dead' and 'dead|' or 'jobs|') .. queue
    end
    return lines
end

-- Return the last that was looked at, `from` if none was, how many were, and those that match. At most ask.most are looked
-- at, and no more once what is read is as large as ask.bytes, so that others are served meanwhile.
local function page_of(from, next_job, has_more)
    local found = {}
    local last = from
    local looked, size = 0, 0
    while has_more() and #found < ask.limit and looked < ask.most and size + carried < ask.bytes do
        local id
        last, id = next_job()
        if matches(id) then
            found[#found + 1] = whole_job(id, fields_of(P .. 'job|' .. id))
            size = size + #found[#found]
        end
        looked = looked + 1
    end
    return last, looked, found
end
