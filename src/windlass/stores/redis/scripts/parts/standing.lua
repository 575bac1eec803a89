-- A job in the lines that it stands in: one for its state, and that of all jobs of its queue. See keys.py.

local function packed_claim(job)
    return cmsgpack.pack(job.token, job.attempt, job.delivery, job.claimed_at, job.worker)
end

-- let a job stand in the line of no state
local function leave(job)
    local queue = job.queue
    if job.state == 'running' then
        part(P .. 'leased|' .. queue, job.id)
        return
    end
    -- it may have come there by this script
    flush()
    if job.state == 'pending' then
        call('ZREM', ready_key(queue, job.kind), place_of(job))
        forget_kind(queue, job.kind)
    elseif job.state == 'scheduled' then
        call('ZREM', P .. 'due|' .. queue, job.id)
    else
        call('ZREM', P .. 'ended|' .. queue .. '|' .. job.state, job.id)
        if job.state == 'dead' then
            call('ZREM', P .. 'dead|' .. queue, job.id)
        end
    end
end

-- let a job wait for a time: pending when that has come, else scheduled
local function wait_until(job, run_at)
    leave(job)
    job.run_at = run_at
    job.state = run_at <= now and 'pending' or 'scheduled'
    call('HSET', job.hash, 'state', job.state, 'run_at', int(run_at))
    if job.delivery > 0 then
        job.claimed_at, job.worker = nil, nil
        call('HSET', job.hash, 'claim', packed_claim(job))
    end
    if job.state == 'pending' then
        join_ready(job)
    else
        join_due(job)
    end
    tell('queue:' .. job.queue)
end

local function remove_job(job)
    leave(job)
    part(P .. 'jobs|' .. job.queue, job.id)
    call('DEL', job.hash, P .. 'history|' .. job.id, P .. 'log|' .. job.id)
end

local HISTORY_KEPT = 20

-- add to what stands beside the history of the last delivery; with a history that has gone nothing stands
local function add_detail(job, module, retried_at)
    local written, known = {}, {}
    for _, detail in ipairs(details_in(call('HGET', job.hash, 'details'))) do
        if detail[1] == job.delivery then
            known = detail
        elseif detail[1] > job.delivery - HISTORY_KEPT then
            written[#written + 1] = detail
        end
    end
    written[#written + 1] = {job.delivery, module or known[2] or false, retried_at or known[3] or false}
    call('HSET', job.hash, 'details', cmsgpack.pack(written))
end

-- add how the delivery that runs ended to the history
local function write_delivery(job, outcome, failure)
    local key = P .. 'history|' .. job.id
    local started_at = time_or(job.claimed_at, job.created_at)
    local worker = type(job.worker) == 'string' and job.worker or nil
    local written = array(7)
        .. cmsgpack.pack(job.delivery, job.attempt, started_at, now, worker, outcome)
        .. (failure and array(3) .. cmsgpack.pack(failure[1], failure[2], failure[3]) or NIL)
    call('RPUSH', key, written)
    call('LTRIM', key, -HISTORY_KEPT, -1)
end

-- write how the delivery that runs ended; of a success the job itself tells
local function end_delivery(job, outcome, failure)
    write_delivery(job, outcome, failure)
    if failure then
        call('HSET', job.hash, 'error', failure[4])
        if failure[5] then
            add_detail(job, failure[5])
        end
    end
end
