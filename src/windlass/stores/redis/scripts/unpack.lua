-- once: asked base lines news places steps holders holds numbers damage ids enqueuing gate
-- Put the jobs of a parcel in line as they are. One is a table of its id, kind, body, priority, max_attempts, created_at,
-- whether it is pending, and where it has them run_at, attempt and delivery, hold with expires_at, fields (pairs for its
-- hash), history and log, which are kept as they come. The reply tells whether this was the next parcel of its move: false,
-- or {true, what is said of each key whose holder here is damaged}. It is {id, queue, kind, tenant} when another job has the
-- id of one, {id, why} when that is damaged.
if AWAY then
    return AWAY, false
end

local damaged = {}

-- let a job have the key that it held elsewhere, unless another job has it here, or that cannot be told
local function take_over(job)
    local other, why = holder(job.hold[1])
    damaged[#damaged + 1] = why
    if other or why then
        return
    end
    local held = {job.id, job.hold[7], job.expires_at or false}
    if not is_over(held) then
        write_holder(job.hold[1], held)
    end
    call('HSET', job_key(job.id), 'hold', cmsgpack.pack(job.hold), 'key', job.hold[2])
end

local function stand_in_line(job, seq)
    local run_at = tonumber(job.run_at or job.created_at)
    local record = {
        id = job.id, hash = job_key(job.id), queue = ask.queue, kind = job.kind, priority = job.priority,
        run_at = run_at, seq = seq,
    }
    join(P .. 'jobs|' .. ask.queue, int(seq), job.id)
    starts_waiting(record, not job.pending and run_at or nil)
    if job.run_at then
        -- the text has digits that a number loses
        call('HSET', record.hash, 'run_at', job.run_at)
    end
end

local function take_in(job, seq)
    local hash = job_key(job.id)
    local head = cmsgpack.pack(seq, ask.queue, job.kind, job.priority, job.max_attempts, job.created_at)
    call('HSET', hash, 'head', head, 'body', job.body)
    stand_in_line(job, seq)
    if job.delivery then
        call('HSET', hash, 'claim', cmsgpack.pack(nil, job.attempt, job.delivery, nil, nil))
    end
    if job.fields then
        call('HSET', hash, unpack(job.fields))
    end
    if job.history then
        call('RPUSH', P .. 'history|' .. job.id, unpack(job.history))
    end
    if job.log then
        call('RPUSH', P .. 'log|' .. job.id, unpack(job.log))
    end
    if job.hold then
        take_over(job)
    end
    count('enqueued', ask.queue, job.kind)
    tell('queue:' .. ask.queue)
end

local name = ask.move .. '|' .. ask.queue
local before = call('HGET', P .. 'unpacked', name)
local number_before = before and cmsgpack.unpack(before)[1] or 0
if ask.number ~= number_before + 1 then
    return cmsgpack.pack(false)
end
local function more_of(job)
    for at = 1, #(job.fields or {}), 2 do
        if job.fields[at] == 'more' then
            return job.fields[at + 1]
        end
    end
end

-- as ids.lua has them: these are no other than what is to be enqueued
local asked = {}
for at, job in ipairs(ask.jobs) do
    asked[at] = {job.id, ask.queue, job.kind, [9] = more_of(job)}
end
local here, conflict = ids_here(asked)
if conflict then
    return cmsgpack.pack(conflict), false
end
local ids = {}
local first, step = next_numbers(#ask.jobs)
for at, job in ipairs(ask.jobs) do
    ids[at] = job.id
    if not here[at] then
        take_in(job, first + (at - 1) * step)
    end
end
call('HSET', P .. 'unpacked', name, cmsgpack.pack({ask.number, ids}))
call('ZADD', P .. 'unpacked_at', int(now), name)
finish()
return cmsgpack.pack({true, damaged})
