-- once: asked base lines news places jobs standing holders holds ends
-- Take back claims whose lease ran out, or with ask.force all: of ask.queues or all, of ask.workers (a set) or all. The
-- reply is {{id, state} for each, {id, why} for each that cannot be read or written}: such a job stays as it is, and must
-- not stand in the way of the others.
local function keeps(queue)
    local keep = ask.keep[queue]
    if keep == nil then
        return ask.keep['']
    end
    return keep
end

local function rescue(job)
    local dead = ask.to == 'dead' or job.attempt >= job.max_attempts
    end_delivery(job, 'rescued', ask.failure)
    count('rescued', job.queue, job.kind)
    -- who had it has lost it: when that settles, it is no repetition
    job.token = nil
    -- whoever held it may be waiting for news that it should stop
    tell('flags')
    if dead then
        call('HSET', job.hash, 'claim', packed_claim(job))
        end_job(job, 'dead', keeps(job.queue))
        return {job.id, 'dead'}
    end
    give_up(job)
    wait_until(job, now)
    return {job.id, 'pending'}
end

local rescued, refused = {}, {}
local PAGE = 1000

-- take back the claim of a job, if it is one that is asked for; return whether it is in line no more
local function take(id, leased)
    local job = read_job(id)
    if not job then
        -- a server that is allowed to forget may have forgotten it
        call('ZREM', leased, id)
        return true
    elseif ask.workers and not ask.workers[job.worker or ''] then
        return false
    end
    rescued[#rescued + 1] = rescue(job)
    return true
end

for _, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    local leased = P .. 'leased|' .. queue
    local passed = 0
    repeat
        local upto = ask.force and '+inf' or int(now)
        local ids = call('ZRANGE', leased, '-inf', upto, 'BYSCORE', 'LIMIT', passed, PAGE)
        for _, id in ipairs(ids) do
            local done, gone = false, false
            if #rescued < ask.limit then
                done, gone = pcall(take, id, leased)
                if not done then
                    refused[#refused + 1] = {id, type(gone) == 'table' and gone.err or tostring(gone)}
                end
            end
            if not (done and gone) then
                passed = passed + 1
            end
        end
        -- the next page is read from what is left
        flush()
    until #ids < PAGE or #rescued >= ask.limit
end
finish()
return cmsgpack.pack({rescued, refused})
