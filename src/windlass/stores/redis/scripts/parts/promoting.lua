-- make scheduled jobs of a queue that have come due pending, the earliest first; return how many
local function promote(queue, limit)
    local due = P .. 'due|' .. queue
    local function page(passed, most)
        return call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', passed, most)
    end
    return drain(limit, page, function(id)
        local job = read_job(id)
        -- a server that is allowed to forget may have forgotten it
        if job then
            job.state = 'pending'
            join_ready(job)
            call('HSET', job.hash, 'state', 'pending')
        end
        part(due, id)
        return true
    end)
end
