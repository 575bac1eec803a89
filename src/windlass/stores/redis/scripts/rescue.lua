-- once: asked base lines news places jobs standing holders holds ends damage each drain
-- Take back claims whose lease ran out, or with ask.force all: of ask.queues or all, of ask.workers (a set) or all. The
-- reply is {{id, state} for each, {id, why} for each that is damaged}: such a job stays as it is.
local function keeps(queue)
    local keep = ask.keep[queue]
    if keep == nil then
        return ask.keep['']
    end
    return keep
end

local function rescue(job)
    local dead = ask.to == 'dead' or job.attempt >= job.max_attempts
    if dead and job.hold then
        holds_it(job)
    end
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

local rescued = {}

-- take back the claim of a job, if it is one that is asked for; return whether it is in line no more
local function take(id, leased)
    local job = read_job(id)
    if not job then
        -- a server that is allowed to forget may have forgotten it
        part(leased, id)
        return true
    elseif ask.workers and not ask.workers[job.worker or ''] then
        return false
    end
    rescued[#rescued + 1] = rescue(job)
    return true
end

for _, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    local leased = P .. 'leased|' .. queue
    local upto = ask.force and '+inf' or int(now)
    local wanted, left
    repeat
        -- again where some have left that were forgotten
        wanted = ask.limit - #rescued
        left = drain(wanted, function(passed, most)
            return call('ZRANGE', leased, '-inf', upto, 'BYSCORE', 'LIMIT', passed, most)
        end, function(id)
            return take(id, leased)
        end)
    until left < wanted or #rescued >= ask.limit
end
finish()
return cmsgpack.pack({rescued, damaged})
