-- Steps of a job's state: each change of a state goes through starts_waiting and starts_running, which are here, and
-- stops_running and ends, which are in ends.lua. A job is a table as of read_job; its `state` is the one before the step,
-- nil for a new job. The job is out of the line of that state before it starts to wait, starts to run or ends.

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

