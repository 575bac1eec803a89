-- parts: asked base fields whole holders
-- Waiting jobs of a queue in the order of their enqueue, past ask.after: up to ask.limit, and no more once they are as large
-- as ask.bytes. At most ask.most are looked at, so that others are served meanwhile. The reply is {the last that was
-- looked at, whether there are more, for each {job, history, log, the key that it holds}}.
local function is_waiting(state)
    return not state or state == 'pending' or state == 'scheduled'
end

-- {name, until, when time frees it, digest}
local function held_key(id, found)
    local hold = found.key and found.hold and cmsgpack.unpack(found.hold)
    local held = hold and holder(hold[1])
    if not held or held[1] ~= id then
        return NIL
    end
    return array(4) .. cmsgpack.pack(hold[1], hold[3]) .. number(held[3]) .. bytes(held[2])
end

local after = ask.after and '(' .. int(ask.after) or '-inf'
local page = call('ZRANGE', P .. 'jobs|' .. ask.queue, after, '+inf', 'BYSCORE', 'LIMIT', 0, ask.most, 'WITHSCORES')
local packed_jobs = {}
local last = ask.after
local looked, size = 0, 0
for at = 1, #page, 2 do
    if #packed_jobs >= ask.limit or size >= ask.bytes then
        break
    end
    local id = page[at]
    if is_waiting(call('HGET', P .. 'job|' .. id, 'state')) then
        local found = fields_of(P .. 'job|' .. id)
        -- a server that is allowed to forget may have forgotten it
        if found.head then
            local whole = array(4) .. whole_records(id, found) .. held_key(id, found)
            packed_jobs[#packed_jobs + 1] = whole
            size = size + #whole
        end
    end
    last = tonumber(page[at + 1])
    looked = looked + 1
end
local more = 2 * looked < #page or #page == 2 * ask.most
return array(3)
    .. number(last) .. (more and '\195' or '\194') .. array(#packed_jobs) .. table.concat(packed_jobs)
