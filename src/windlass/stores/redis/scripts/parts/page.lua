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

-- Return the last that was looked at, `from` if none was, how many were, and those that match, each framed. At most ask.most
-- are looked at, and no more once what is read is as large as ask.bytes, so that others are served meanwhile.
local function page_of(from, next_job, has_more)
    local found = {}
    local last = from
    local looked, size = 0, 0
    local id
    past_damage(function()
        while has_more() and #found < ask.limit and looked < ask.most and size + carried < ask.bytes do
            looked = looked + 1
            last, id = next_job()
            if matches(id) then
                found[#found + 1] = framed_row(id, whole_job(id, fields_of(P .. 'job|' .. id)))
                size = size + #found[#found]
            end
            id = nil
        end
    end, function(why)
        if not id then
            -- it is the line that is damaged
            error(why, 0)
        end
        if damaged_matches(id) then
            found[#found + 1] = framed_row(id)
        end
    end)
    return last, looked, found
end
