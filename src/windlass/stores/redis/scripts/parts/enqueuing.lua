-- Jobs into line. One is {id, queue, kind, body, priority, max_attempts, run_at, delay, more, hold, kv}, shorter where
-- nothing follows.
local function run_at_of(job)
    if job[7] then
        return math.max(tonumber(job[7]), now)
    end
    return job[8] and later(job[8]) or now
end

local function create(job, seq)
    local id, queue, kind = job[1], job[2], job[3]
    local run_at = run_at_of(job)
    local hash = P .. 'job|' .. id
    call('HSET', hash, 'head', cmsgpack.pack(seq, queue, kind, job[5], job[6], now), 'body', job[4])
    join(P .. 'jobs|' .. queue, int(seq), id)
    starts_waiting({id = id, hash = hash, queue = queue, kind = kind, priority = job[5], seq = seq}, run_at)
    if job[9] then
        call('HSET', hash, 'more', job[9])
    end
    count('enqueued', queue, kind)
    tell('queue:' .. queue)
end

-- Put jobs in line that are not refused; return the id that each has now, and a set of the places of those that are not new.
-- Of jobs with keys or values of the caller `keyed` knows more: who holds the key, and what is to be done once the job is
-- there. `here` is a set of the places of those that are here already, where that is known.
local function put(jobs, keyed, here)
    local ids, old = {}, {}
    local first, step = next_numbers(#jobs)
    for at, job in ipairs(jobs) do
        local id = job[1]
        local is_here
        if here then
            is_here = here[at]
        else
            is_here = call('EXISTS', job_key(id)) == 1
        end
        local there = is_here and id or keyed and keyed.holder_of(job)
        ids[at] = there or id
        if there then
            old[at] = true
        else
            create(job, first + (at - 1) * step)
            if keyed then
                keyed.created(job)
            end
        end
    end
    return ids, old
end

local function created_reply(ids, old)
    if next(old) == nil then
        return cmsgpack.pack({true})
    end
    local made = {}
    for at, id in ipairs(ids) do
        made[at] = {id, not old[at]}
    end
    return cmsgpack.pack({true, made})
end
