-- A waiting or finished job out of the line of its state, and out of the store.
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

-- delete a waiting or finished job
local function remove_job(job)
    leave(job)
    part(P .. 'jobs|' .. job.queue, job.id)
    call('DEL', job.hash, P .. 'history|' .. job.id, P .. 'log|' .. job.id)
end
