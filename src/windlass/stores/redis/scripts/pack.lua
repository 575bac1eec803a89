-- parts: asked base lines places fields jobs whole holders damage each framed
-- Waiting jobs of a queue in the order of their enqueue, past ask.after: up to ask.limit, and no more once they are as large
-- as ask.bytes. At most ask.most are looked at, so that others are served meanwhile. The reply is {the last that was
-- looked at, whether there are more, for each {id, {job, history, log, details, the key that it holds}}}.
local function may_go(state)
    return not state or state == 'pending' or state == 'scheduled'
end

-- {name, until, when time frees it, digest}
local function held_key(id, found)
    local hold = found.key and found.hold and cmsgpack.unpack(found.hold)
    if not hold or not holds_it({id = id, hold = hold, key = found.key}) then
        return NIL
    end
    local held, why = holder(hold[1])
    if why then
        held = {id, hold[7]}
    elseif not held then
        return NIL
    end
    return array(4) .. cmsgpack.pack(hold[1], hold[3]) .. number(held[3]) .. bytes(held[2])
end

local after = ask.after and '(' .. int(ask.after) or '-inf'
local page = call('ZRANGE', P .. 'jobs|' .. ask.queue, after, '+inf', 'BYSCORE', 'LIMIT', 0, ask.most, 'WITHSCORES')
local packed_jobs = {}
local last = ask.after
local looked, size = 0, 0
local function pack(id)
    if not may_go(call('HGET', P .. 'job|' .. id, 'state')) then
        return nil
    end
    local found = fields_of(P .. 'job|' .. id)
    -- a server that is allowed to forget may have forgotten it; what is read here can be let go
    return read_job(id) and array(5) .. whole_records(id, found) .. held_key(id, found) or nil
end

local function add(id, row)
    packed_jobs[#packed_jobs + 1] = framed_row(id, row)
    size = size + #packed_jobs[#packed_jobs]
end

past_damage(function()
    while 2 * looked < #page and #packed_jobs < ask.limit and size < ask.bytes do
        looked = looked + 1
        last = tonumber(page[2 * looked])
        local id = page[2 * looked - 1]
        local row = pack(id)
        if row then
            add(id, row)
        end
    end
end, function()
    add(page[2 * looked - 1])
end)
local more = 2 * looked < #page or #page == 2 * ask.most
return array(3)
    .. number(last) .. (more and '\195' or '\194') .. array(#packed_jobs) .. table.concat(packed_jobs)
