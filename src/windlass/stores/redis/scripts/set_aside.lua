-- once: asked base lines news places steps fields jobs body holders holds ends damage each aside
-- Set aside running jobs that were found to be damaged when their claims were read: {id, token, what is damaged} each, whose
-- token must still hold, as far as that can be told. The reply has for each whether it was done. The receipt of the claim
-- ask.forget goes, where that has given no other.
local function queue_of(id)
    for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
        if call('ZSCORE', P .. 'leased|' .. queue, id) then
            return queue
        end
    end
    return nil
end

-- whether another claim has the job, or none
local function is_held_otherwise(id, token)
    local found = call('HMGET', job_key(id), 'state', 'claim')
    local done, held_by = pcall(cmsgpack.unpack, found[2])
    return found[1] ~= 'running' or done and held_by ~= token
end

-- let a claim that was never given count as no attempt and no delivery
local function uncount(id)
    local hash = job_key(id)
    local done, _, attempt, delivery = pcall(cmsgpack.unpack, call('HGET', hash, 'claim'))
    if done and type(attempt) == 'number' and delivery == 1 then
        call('HDEL', hash, 'claim')
    elseif done and type(attempt) == 'number' and type(delivery) == 'number' then
        call('HSET', hash, 'claim', cmsgpack.pack(nil, attempt - 1, delivery - 1, nil, nil))
    end
end

local function aside(row)
    local id, token, why = row[1], row[2], row[3]
    local is_hash, lost = pcall(is_held_otherwise, id, token)
    if not is_hash then
        damage(lost)
    end
    local queue = queue_of(id)
    if is_hash and lost or not queue then
        return false
    end
    set_aside(id, queue, nil, 'running', why, why)
    if is_hash then
        uncount(id)
    end
    return true
end

local answers = {}
if ask.forget then
    call('DEL', P .. 'receipt|' .. ask.forget)
end
each(ask.jobs, answers, aside, function()
    return false
end)
finish()
return cmsgpack.pack(answers)
