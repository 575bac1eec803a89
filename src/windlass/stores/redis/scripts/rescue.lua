-- once: asked base lines news places fields jobs body steps sound_lines deliveries holders holds ends damage each drain aside
-- Take back claims whose lease ran out, or with ask.force all: of ask.queues or all, of ask.workers (a set) or all. The
-- reply is {{id, state} for each, {id, why} for those among them that were damaged, and set aside}.
local function keeps(queue)
    local keep = ask.keep[queue]
    if keep == nil then
        return ask.keep['']
    end
    return keep
end

local function rescue(job, dead)
    end_delivery(job, 'rescued', ask.failure)
    count('rescued', job.queue, job.kind)
    -- who had it has lost it: when that settles, it is no repetition
    job.token = nil
    -- whoever held it may be waiting for news that it should stop
    tell('flags')
    stops_running(job, not dead)
    if dead then
        ends(job, 'dead', keeps(job.queue), {'claim', packed_claim(job)})
        return {job.id, 'dead'}
    end
    give_up(job)
    starts_waiting(job, now)
    return {job.id, 'pending'}
end

local rescued, damaged = {}, {}

-- take back the claim of a job, if it is one that is asked for; return whether it is in line no more
local function take(id, queue, leased)
    local job = read_job(id)
    if not job then
        -- a server that is allowed to forget may have forgotten it
        part(leased, id)
        return true
    elseif ask.workers and not ask.workers[job.worker or ''] then
        return false
    end
    if is_finished(job) then
        part(leased, id)
        return true
    end
    assert(job.queue == queue and job.state == 'running', 'its head or its state is damaged')
    local dead = ask.to == 'dead' or job.attempt >= job.max_attempts
    local can_move = dead and (not keeps(queue) or can_end(job, 'dead')) or not dead and can_wait(job)
    if can_move then
        rescued[#rescued + 1] = rescue(job, dead)
    end
    return can_move
end

-- Let the history of a damaged job have its delivery, as that of any job which is rescued, where claim and history can be
-- read.
local function note_delivery(id, found)
    local is_list = redis.pcall('TYPE', P .. 'history|' .. id).ok
    if not found.claim or claim_damage(found.claim) or is_list ~= 'none' and is_list ~= 'list' then
        return
    end
    local _, attempt, delivery, claimed_at, worker = cmsgpack.unpack(found.claim)
    if claimed_at then
        local job = {id = id, attempt = attempt, delivery = delivery, claimed_at = claimed_at, worker = worker}
        job.created_at = now
        write_delivery(job, 'rescued', ask.failure)
    end
end

-- set aside a job whose claim cannot be taken back; of a damaged one it is not known whose it was
local function refuse(id, queue, err)
    if ask.workers then
        return false
    end
    local is_hash, found = pcall(fields_of, job_key(id))
    count('rescued', queue, is_hash and stored_kind(found) or '')
    if is_hash then
        note_delivery(id, found)
    end
    damaged[#damaged + 1] = {id, set_aside(id, queue, nil, 'running', err)}
    rescued[#rescued + 1] = {id, 'dead'}
    return true
end

for _, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    local leased = P .. 'leased|' .. queue
    local upto = ask.force and '+inf' or int(now)
    local wanted, left
    repeat
        -- again where some have left that were forgotten
        wanted = ask.limit - #rescued
        left = drain(wanted, function(passed, most)
            return call('ZRANGE', leased, '-inf', upto, 'BYSCORE', 'LIMIT', passed, most)
        end, function(id)
            return take(id, queue, leased)
        end, function(id, err)
            return refuse(id, queue, err)
        end)
    until left < wanted or #rescued >= ask.limit
end
finish()
raise_if_broken()
return cmsgpack.pack({rescued, damaged})
