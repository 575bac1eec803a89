-- The steps by which a job stops running and ends; see steps.lua.

-- Remove a running job from the line of the leases. With `rings` the listeners of its queue are notified: it waits again.
local function stops_running(job, rings)
    part(P .. 'leased|' .. job.queue, job.id)
    if rings then
        tell('queue:' .. job.queue)
    end
end

-- End a job: its key is free unless held by time, and its record is deleted at once if it is not kept. `fields` are more
-- pairs for its hash; a damaged job may have none.
local function ends(job, state, keep, fields)
    if job.hold then
        free(job)
        give_up(job)
    end
    count(state, job.queue, job.kind)
    tell('ends')
    if not keep then
        part(P .. 'jobs|' .. job.queue, job.id)
        if job.has_no_lists then
            call('DEL', job.hash)
        else
            call('DEL', job.hash, P .. 'history|' .. job.id, P .. 'log|' .. job.id)
        end
        return
    end
    local ended_at = int(now)
    if fields then
        call('HSET', job.hash, 'state', state, 'finished_at', ended_at, unpack(fields))
    elseif job.hash then
        call('HSET', job.hash, 'state', state, 'finished_at', ended_at)
    end
    join(P .. 'ended|' .. job.queue .. '|' .. state, ended_at, job.id)
    if state == 'dead' then
        join(P .. 'dead|' .. job.queue, int(job.seq), job.id)
    end
end
