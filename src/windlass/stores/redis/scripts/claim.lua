-- parts: asked base lines places steps fields jobs holders receipts gate damage each drain promoting body
-- Give ready jobs to a worker, strictly in the order of the queues, or with by_priority as if they were one. The reply
-- is {whether more jobs came due than could be promoted, whether the rest is for the next claim, claims, {id, why} for each
-- that is damaged, with an empty id where none is known}; while more are due nothing is given, unless ask.regardless. Once what is given is as large as ask.bytes
-- the rest stays in line. What is damaged is set aside, and those behind it are given; after MOST_ASIDE of them the caller asks
-- again, as if more were due, so that others are served meanwhile. With ask.framed each claim is
-- {id, token, its bytes}: for a reply that could not be read.
local PROMOTED_AT_ONCE = 1000
local AHEAD_AT_LEAST = 8
local MOST_ASIDE = 1000

local damaged = {}
-- {id, queue, kind, what is said of an error} of those that are to be set aside
local aside = {}

local function note_damage(queue, id, why)
    aside[#aside + 1] = {id, queue, nil, why}
end

local function is_one_table(...)
    return select('#', ...) == 1 and type(...) == 'table'
end

-- What goes into the reply as it is kept must be whole, or nobody can read what comes behind it: raise where it is not.
local function check(found, queue, kind)
    local _, of_queue, of_kind = sound_head(cmsgpack.unpack(found.head))
    assert(of_queue == queue and of_kind == kind and is_whole(found.body), 'its head or its body is damaged')
    local more = found.more
    if more then
        assert(string.byte(more) == 0x95 and is_one_table(cmsgpack.unpack(more)), 'what more it has is damaged')
    end
    local run_at = found.run_at
    if run_at then
        run_at = tonumber(run_at)
        assert(run_at >= EARLIEST and run_at <= LATEST, 'its time is damaged')
    end
end

local OF_CLAIM = array(13)

local function claim_of(id, found, token, attempt, delivery, claimed_at, lease)
    local claim = OF_CLAIM
        .. cmsgpack.pack(
            id, token, attempt, delivery, claimed_at, lease, tonumber(found.run_at), found.error, found.cancel == '1',
            found.key
        )
        .. OF_SIX .. found.head .. found.body .. (found.more or NIL)
    return ask.framed and array(3) .. cmsgpack.pack(id, token) .. bytes(claim) or claim
end

-- the claims of an earlier answer that still hold their jobs; of those that are damaged the token is told too
local function claims_again(kept)
    local seed, ids, cut = cmsgpack.unpack(kept)
    local claims = {}
    local at = 0
    each(ids, {}, function(id)
        at = at + 1
        local job = fence(id, seed .. at)
        if job then
            local lease = tonumber(call('ZSCORE', P .. 'leased|' .. job.queue, id))
            local found = fields_of(job.hash)
            check(found, job.queue, job.kind)
            claims[#claims + 1] = claim_of(id, found, job.token, job.attempt, job.delivery, job.claimed_at, lease)
        end
    end, function(id, why)
        damaged[#damaged + 1] = {id, why, seed .. at}
    end)
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
        if promote(queue, PROMOTED_AT_ONCE, note_damage, MOST_ASIDE - #aside) == PROMOTED_AT_ONCE then
            more_due = true
        end
    end
end
local waits = more_due and not ask.regardless

-- the lines of some queues that have a job of a kind that the caller knows
local function lines_of(names)
    local lines = {}
    for _, queue in ipairs(names) do
        -- raises where no job could be put there, since nothing is taken out of a line yet
        call('ZCARD', P .. 'leased|' .. queue)
        for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. queue)) do
            if not ask.kinds or ask.kinds[kind] then
                local key = ready_key(queue, kind)
                lines[#lines + 1] = {queue = queue, kind = kind, key = key, taken = 0, read = 0}
            end
        end
    end
    return lines
end

-- Let `line.head` be the first job of it that was not taken, read `ahead` at a time; false when there is none. A member that
-- is too short to name a job is taken out of the line with those before it.
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
    if #line.head < ID_FROM then
        line.taken = line.taken + 1
        damaged[#damaged + 1] = {'', 'a member of a key that begins with ready|' .. line.queue .. ' is too short'}
        return look(line, ahead)
    end
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
    return not waits and #chosen < ask.limit and size < ask.bytes and #aside < MOST_ASIDE
end

-- choose a job, if it is there; whatever can fail, since it is damaged, does so here, where nothing is written yet
local function add(id, line)
    local hash = job_key(id)
    local found = fields_of(hash)
    -- a server that is allowed to forget may have forgotten it, but never one field alone
    if not found.head and next(found) == nil then
        return
    end
    check(found, line.queue, line.kind)
    local job = {
        id = id, hash = hash, queue = line.queue, kind = line.kind, state = 'pending', found = found,
        attempt = 1, delivery = 1,
    }
    if found.claim then
        local token, attempt, delivery = cmsgpack.unpack(found.claim)
        local is_sound = attempt >= 0 and attempt <= MOST and delivery >= 0 and delivery <= MOST
            and (not token or #token >= 0)
        assert(is_sound, 'its claim is damaged')
        job.attempt, job.delivery = attempt + 1, delivery + 1
    end
    if found.hold then
        job.hold = cmsgpack.unpack(found.hold)
        assert(type(job.hold) == 'table' and type(job.hold[1]) == 'string', 'its hold is damaged')
        job.key = found.key
        job.frees_key = job.hold[3] == 'claimed'
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
            add(id, open[best])
            pass()
        end
    end
    past_damage(go_on, function(why)
        if not id then
            -- it is the line that is damaged
            error(why, 0)
        end
        aside[#aside + 1] = {id, open[best].queue, open[best].kind, why}
        pass()
    end)
    for _, line in ipairs(lines) do
        taken_of[#taken_of + 1] = line
    end
end

-- take what was looked at out of its line
local function take_out(line)
    call('ZREMRANGEBYRANK', line.key, 0, line.taken - 1)
    forget_kind(line.queue, line.kind)
end

if ask.by_priority and not waits then
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
    starts_running(job, cmsgpack.pack(token, job.attempt, job.delivery, now, ask.worker), score)
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
    claims[at] = claim_of(job.id, found, token, job.attempt, job.delivery, now, expires)
    ids[at] = job.id
end
if #aside > 0 then
    -- What only damaged jobs need is made where there are some: of the time of a claim it would take a tenth.
    -- parts: news holds ends aside
    for _, job in ipairs(aside) do
        damaged[#damaged + 1] = {job[1], set_aside(job[1], job[2], job[3], nil, job[4])}
    end
    finish()
end
flush()
local is_full = #aside >= MOST_ASIDE
if #claims > 0 or ask.again and not waits and not is_full then
    keep_reply(cmsgpack.pack(ask.seed, ids, cut))
end
return reply(more_due or is_full, cut, claims)
