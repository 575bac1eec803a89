-- make scheduled jobs of a queue that have come due pending, the earliest first; return how many. Those that are damaged leave
-- their line too, up to `most` of them, and are told to refuse(queue, id, why).
local function promote(queue, limit, refuse, most)
    local due = P .. 'due|' .. queue
    local function page(passed, most)
        return call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', passed, most)
    end
    -- nearly always
    if #page(0, 1) == 0 then
        return 0
    end
    return drain(limit, page, function(id)
        local job = read_job(id)
        -- a server that is allowed to forget may have forgotten it
        if job then
            assert(job.queue == queue, 'its head is damaged')
            starts_waiting(job)
        end
        part(due, id)
        return true
    end, function(id, why)
        refuse(queue, id, why)
        part(due, id)
        return UNCOUNTED
    end, most)
end
