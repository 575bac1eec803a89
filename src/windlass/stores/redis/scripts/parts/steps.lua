-- Steps of a job's state: each change of a state goes through starts_waiting and starts_running, which are here, and
-- stops_running and ends, which are in ends.lua. A job is a table as of read_job; its `state` is the one before the step,
-- nil for a new job. The job is out of the line of that state before it starts to wait, starts to run or ends.

local function forget_kind(queue, kind)
    if call('EXISTS', ready_key(queue, kind)) == 0 then
        call('SREM', P .. 'kinds|' .. queue, kind)
    end
end

-- whether each line is of its type that a job comes to, or leaves, when it starts to wait
local waiting_of = {}
local function can_wait(job)
    local queue = job.queue
    local ready = ready_key(queue, job.kind)
    if waiting_of[ready] == nil then
        waiting_of[ready] = is_sound(ready) and is_sound(P .. 'leased|' .. queue) and is_sound(P .. 'due|' .. queue)
            and is_sound(P .. 'kinds|' .. queue, 'SCARD')
    end
    return waiting_of[ready]
end

-- the same of a job that ends, or that has ended
local function can_end(job, state)
    local queue = job.queue
    return is_sound(P .. 'leased|' .. queue) and is_sound(P .. 'ended|' .. queue .. '|' .. state)
        and (state ~= 'dead' or is_sound(P .. 'dead|' .. queue))
end

-- remove a waiting or finished job from the line of its state
local function leave(job)
    local queue = job.queue
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

local function packed_claim(job)
    return cmsgpack.pack(job.token, job.attempt, job.delivery, job.claimed_at, job.worker)
end

-- Let a job wait until `run_at`: pending when that has come, else scheduled. Without `run_at` it is pending, and its time
-- stays. Of a new job that is pending nothing is written: that state, and the time of its enqueue, are those of a missing field.
local function starts_waiting(job, run_at)
    local before = job.state
    job.state = run_at and run_at > now and 'scheduled' or 'pending'
    job.run_at = run_at or job.run_at
    if before and not run_at then
        call('HSET', job.hash, 'state', job.state)
    elseif before and job.delivery > 0 then
        job.claimed_at, job.worker = nil, nil
        call('HSET', job.hash, 'state', job.state, 'run_at', int(run_at), 'claim', packed_claim(job))
    elseif before or job.state == 'scheduled' then
        call('HSET', job.hash, 'state', job.state, 'run_at', int(run_at))
    end
    if job.state == 'pending' then
        join_ready(job)
    else
        join_due(job)
    end
end

-- let a job run by a packed claim, whose lease ends at `expires`
local function starts_running(job, claim, expires)
    call('HSET', job.hash, 'state', 'running', 'claim', claim)
    job.state = 'running'
    join(P .. 'leased|' .. job.queue, expires, job.id)
end

-- delete a job that is in the line of no state
local function remove_job(job)
    part(P .. 'jobs|' .. job.queue, job.id)
    if job.has_no_lists then
        call('DEL', job.hash)
    else
        call('DEL', job.hash, P .. 'history|' .. job.id, P .. 'log|' .. job.id)
    end
end
