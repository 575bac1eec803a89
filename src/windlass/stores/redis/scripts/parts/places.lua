-- Where a job is kept, and the lines that it waits in. See keys.py.
local function job_key(id)
    return P .. 'job|' .. id
end

local function ready_key(queue, kind)
    return P .. 'ready|' .. queue .. '|' .. kind
end

-- By the order of these bytes jobs are claimed: they all have one score.
local PLACE = '>I4I8I8'
local ID_FROM = 21

local function place_of(job)
    return struct.pack(PLACE, job.priority, job.run_at, job.seq) .. job.id
end

local function join_ready(job)
    local key = ready_key(job.queue, job.kind)
    if not added[key] then
        call('SADD', P .. 'kinds|' .. job.queue, job.kind)
    end
    join(key, 0, place_of(job))
end

local function join_due(job)
    join(P .. 'due|' .. job.queue, int(job.run_at), job.id)
end
