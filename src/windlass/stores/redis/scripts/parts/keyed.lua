-- Jobs into line that may ask for a unique key or bring values of the caller along.
local function refusal(hold, held, waits)
    if hold[6] and hold[7] ~= held[2] then
        return 'payload'
    elseif hold[5] == 'raise' then
        return 'held'
    elseif hold[5] == 'replace' and not waits then
        return 'claimed'
    end
    return nil
end

-- whether a job waits that is to be replaced, of which all is read that this writes by
local function waits_now(id)
    local job = read_job(id)
    return job and is_waiting(job)
end

-- Return {key, holder, why} if one of the jobs would meet a key that refuses it, {id, queue, kind, tenant} if another job
-- has its id, {id, why} of a damaged job that has its id or that it would replace, or {why} where a unique key has a damaged
-- holder or another key is broken, and write nothing. What will be different by then: holders by name (false for none), the id of a job that is gone, of one that waits.
local function conflict_of(jobs, holders, gone, waiting_id)
    local broken = broken_key(jobs)
    if broken then
        return {broken}
    end
    local new = {}
    for _, job in ipairs(jobs) do
        local id, hold = job[1], job[10]
        if new[id] then
            local conflict = conflict_with_earlier(job, new[id])
            if conflict then
                return conflict
            end
        elseif id ~= gone and call('EXISTS', job_key(id)) == 1 then
            local conflict = conflict_with_stored(job)
            if conflict then
                return conflict
            end
        else
            local held
            if hold then
                held = holders[hold[1]]
                if held == nil then
                    local why
                    held, why = holder(hold[1])
                    if why then
                        return {'who holds the unique key cannot be read: ' .. why}
                    end
                elseif held and is_over(held) then
                    held = nil
                end
            end
            if held then
                local waits = new[held[1]] ~= nil or held[1] == waiting_id
                if hold[5] == 'replace' and not waits then
                    local done
                    done, waits = pcall(waits_now, held[1])
                    if not done then
                        return {held[1], damage(waits)}
                    end
                end
                local why = refusal(hold, held, waits)
                if why then
                    return {hold[2], held[1], why}
                elseif hold[5] == 'replace' then
                    holders[hold[1]] = {held[1], hold[7], held[3]}
                end
            else
                if hold then
                    holders[hold[1]] = holder_for(hold, id)
                end
                new[id] = job
            end
        end
    end
    return nil
end

local function replace(job, hold, held)
    local record = read_job(held[1])
    if not record then
        return
    end
    call('HSET', record.hash, 'body', job[4])
    if record.hold then
        record.hold[7] = hold[7]
        call('HSET', record.hash, 'hold', cmsgpack.pack(record.hold))
    end
    write_holder(hold[1], {held[1], hold[7], held[3]})
    leave(record)
    starts_waiting(record, run_at_of(job))
    tell('queue:' .. record.queue)
    write_kv(job[11])
end

local keyed = {}

-- the id of the job that holds the key of another, which it may be replaced by
function keyed.holder_of(job)
    local hold = job[10]
    local held = hold and holder(hold[1])
    if not held then
        return nil
    end
    if hold[5] == 'replace' then
        replace(job, hold, held)
    end
    return held[1]
end

function keyed.created(job)
    local hold = job[10]
    if hold then
        take(hold, job[1])
        call('HSET', job_key(job[1]), 'hold', cmsgpack.pack(hold), 'key', hold[2])
    end
    write_kv(job[11])
end
