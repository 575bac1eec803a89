-- parts: asked base lines places fields jobs holders receipts gate damage each drain promoting body
-- Give ready jobs to a worker, strictly in the order of the queues, or with by_priority as if they were one. The reply
-- is {whether more jobs came due than could be promoted, whether the rest is for the next claim, claims, {id, why} for each
-- that is damaged}; while more are due nothing is given, unless ask.regardless. Once what is given is as large as ask.bytes
-- the rest stays in line, and so does what is damaged, behind which others are given.
local PROMOTED_AT_ONCE = 1000
local AHEAD_AT_LEAST = 8

local function is_one_table(...)
    return select('#', ...) == 1 and type(...) == 'table'
end

-- What goes into the reply as it is kept must be whole, or nobody can read what comes behind it: raise where it is not.
local function check(found)
    sound_head(cmsgpack.unpack(found.head))
    assert(is_whole(found.body), 'its body is damaged')
    local more = found.more
    if more then
        assert(string.byte(more) == 0x95 and is_one_table(cmsgpack.unpack(more)), 'what more it has is damaged')
    end
end

local OF_CLAIM = array(13)

local function claim_of(id, found, token, attempt, delivery, claimed_at, lease)
    return OF_CLAIM
        .. cmsgpack.pack(
            id, token, attempt, delivery, claimed_at, lease, tonumber(found.run_at), found.error, found.cancel == '1',
            found.key
        )
        .. OF_SIX .. found.head .. found.body .. (found.more or NIL)
end

-- the claims of an earlier answer that still hold their jobs
local function claims_again(kept)
    local seed, ids, cut = cmsgpack.unpack(kept)
    local claims = {}
    local at = 0
    each(ids, {}, function(id)
        at = at + 1
        local job = read_job(id)
        if is_running(job, seed .. at) then
            local lease = tonumber(call('ZSCORE', P .. 'leased|' .. job.queue, id))
            local found = fields_of(job.hash)
            check(found)
            claims[#claims + 1] = claim_of(id, found, job.token, job.attempt, job.delivery, job.claimed_at, lease)
        end
    end, note_damage)
    return cut, claims
end

local function reply(due, cut, claims)
    return array(4)
        .. (due and '\195' or '\194') .. (cut and '\195' or '\194') .. array(#claims) .. table.concat(claims)
        .. cmsgpack.pack(damaged)
end

local before = earlier_reply()
if before then
    return reply(false, claims_again(before))
end
if AWAY then
    return AWAY
end

local queues = {}
local more_due = false
for _, queue in ipairs(ask.queues) do
    if call('SISMEMBER', P .. 'paused', queue) == 0 then
        queues[#queues + 1] = queue
        if promote(queue, PROMOTED_AT_ONCE) == PROMOTED_AT_ONCE then
            more_due = true
        end
    end
end
if more_due and not ask.regardless then
    return reply(true, false, {})
end

-- the lines of some queues that have a job of a kind that the caller knows
local function lines_of(names)
    local lines = {}
    for _, queue in ipairs(names) do
        local leased = P .. 'leased|' .. queue
        for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. queue)) do
            if not ask.kinds or ask.kinds[kind] then
                local key = ready_key(queue, kind)
                lines[#lines + 1] = {queue = queue, kind = kind, key = key, leased = leased, taken = 0, read = 0}
            end
        end
    end
    return lines
end

-- let `line.head` be the first job of it that was not taken, read `ahead` at a time; false when there is none
local function look(line, ahead)
    if line.taken == line.read then
        line.members = call('ZRANGE', line.key, line.read, line.read + ahead - 1)
        line.first = line.read
        line.read = line.read + #line.members
        if line.taken == line.read then
            return false
        end
    end
    line.head = line.members[line.taken - line.first + 1]
    line.place = nil
    return true
end

local function is_before(line, other)
    line.place = line.place or {struct.unpack(PLACE, line.head)}
    other.place = other.place or {struct.unpack(PLACE, other.head)}
    for at = 1, 3 do
        if line.place[at] ~= other.place[at] then
            return line.place[at] < other.place[at]
        end
    end
    return false
end

local chosen = {}
local taken_of = {}
local size = 0

local function wants_more()
    return #chosen < ask.limit and size < ask.bytes
end

-- choose a job, if it is there; whatever can fail, since it is damaged, does so here, where nothing is written yet
local function add(id, leased)
    local hash = job_key(id)
    local found = fields_of(hash)
    -- a server that is allowed to forget may have forgotten it
    if not found.head then
        return
    end
    check(found)
    local job = {id = id, hash = hash, leased = leased, found = found, attempt = 1, delivery = 1}
    if found.claim then
        local _, attempt, delivery = cmsgpack.unpack(found.claim)
        job.attempt, job.delivery = attempt + 1, delivery + 1
    end
    if found.hold then
        job.hold = cmsgpack.unpack(found.hold)
        job.frees_key = job.hold[3] == 'claimed'
        if job.frees_key then
            holds_it(job)
        end
    end
    size = size + #found.body + (found.more and #found.more or 0)
    chosen[#chosen + 1] = job
end

-- choose the most urgent jobs of some queues
local function choose(names)
    local lines = lines_of(names)
    local ahead = math.max(AHEAD_AT_LEAST, math.ceil((ask.limit - #chosen) / math.max(#lines, 1)))
    local open = {}
    for _, line in ipairs(lines) do
        if look(line, ahead) then
            open[#open + 1] = line
        end
    end
    local best, id
    local function pass()
        id = nil
        local line = open[best]
        line.taken = line.taken + 1
        if not look(line, ahead) then
            table.remove(open, best)
        end
    end
    local function go_on()
        while #open > 0 and wants_more() do
            best = 1
            for at = 2, #open do
                if is_before(open[at], open[best]) then
                    best = at
                end
            end
            id = string.sub(open[best].head, ID_FROM)
            add(id, open[best].leased)
            pass()
        end
    end
    past_damage(go_on, function(why)
        if not id then
            -- it is the line that is damaged
            error(why, 0)
        end
        note_damage(id, why)
        local line = open[best]
        line.stay = line.stay or {}
        table.insert(line.stay, line.taken)
        pass()
    end)
    for _, line in ipairs(lines) do
        taken_of[#taken_of + 1] = line
    end
end

-- take what was looked at out of its line, but for what is to stay
local function take_out(line)
    local last = line.taken - 1
    for at = line.stay and #line.stay or 0, 1, -1 do
        if line.stay[at] < last then
            call('ZREMRANGEBYRANK', line.key, line.stay[at] + 1, last)
        end
        last = line.stay[at] - 1
    end
    if last >= 0 then
        call('ZREMRANGEBYRANK', line.key, 0, last)
    end
    forget_kind(line.queue, line.kind)
end

if ask.by_priority then
    choose(queues)
else
    for _, queue in ipairs(queues) do
        if wants_more() then
            choose({queue})
        end
    end
end
for _, line in ipairs(taken_of) do
    if line.taken > 0 then
        take_out(line)
    end
end

local cut = size >= ask.bytes
local claims, ids = {}, {}
local expires = later(ask.lease)
local score = int(expires)
for at, job in ipairs(chosen) do
    local found = job.found
    local token = ask.seed .. at
    call(
        'HSET', job.hash, 'state', 'running', 'claim', cmsgpack.pack(token, job.attempt, job.delivery, now, ask.worker)
    )
    if found.progress then
        call('HDEL', job.hash, 'progress')
    end
    if job.frees_key then
        -- the job shows its key no more, but could take it back
        if holds_it(job) then
            call('DEL', P .. 'hold|' .. job.hold[1])
        end
        call('HDEL', job.hash, 'key')
        found.key = nil
    end
    join(job.leased, score, job.id)
    claims[at] = claim_of(job.id, found, token, job.attempt, job.delivery, now, expires)
    ids[at] = job.id
end
flush()
if #claims > 0 or ask.again then
    keep_reply(cmsgpack.pack(ask.seed, ids, cut))
end
return reply(more_due, cut, claims)
