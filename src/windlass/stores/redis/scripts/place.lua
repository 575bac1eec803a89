-- parts: asked base lines places jobs holders damage
-- What stands between a job and its claim: {the time, how many a claim gives before it, up to ask.most, who holds its
-- key}, or nil when there is no such job; of a damaged one the time alone.
local done, job = pcall(read_job, ask.id)
if not done then
    damage(job)
    return array(3) .. number(now) .. NIL .. NIL
elseif not job then
    return NIL
end

local function ahead_of(job)
    local upto = '(' .. struct.pack(PLACE, job.priority, job.run_at, job.seq)
    local ahead = 0
    for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. job.queue)) do
        ahead = ahead + call('ZLEXCOUNT', ready_key(job.queue, kind), '-', upto)
    end
    return math.min(ahead, ask.most)
end

local held = job.hold and holder(job.hold[1])
return array(3)
    .. number(now) .. (job.state == 'pending' and number(ahead_of(job)) or NIL) .. packed(held and held[1])
