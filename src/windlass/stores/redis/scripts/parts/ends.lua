-- The steps by which a job stops running and ends; see steps.lua.

-- Remove a running job from the line of the leases. With `rings` the listeners of its queue are notified: it waits again.
local function stops_running(job, rings)
    part(P .. 'leased|' .. job.queue, job.id)
    if rings then
        tell('queue:' .. job.queue)
    end
end

local NO_FIELDS = {}

-- End a job: its key is free unless held by time, and its record is deleted at once if it is not kept. `fields` are more
-- pairs for its hash; a damaged job may have none.
local function ends(job, state, keep, fields)
    free(job)
    give_up(job)
    count(state, job.queue, job.kind)
    tell('ends')
    if not keep then
        remove_job(job)
        return
    end
    if job.hash then
        call('HSET', job.hash, 'state', state, 'finished_at', int(now), unpack(fields or NO_FIELDS))
    end
    join(P .. 'ended|' .. job.queue .. '|' .. state, int(now), job.id)
    if state == 'dead' then
        join(P .. 'dead|' .. job.queue, int(job.seq), job.id)
    end
    job.state = state
end
