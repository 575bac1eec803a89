-- parts: base fields whole
-- A page of the jobs that match, in the order of their enqueue, past ask.after. At most ask.most are looked at, so that
-- others are served meanwhile. The reply is {the last that was looked at, whether there are more, jobs}.
local function holds_text(text, part)
    return part and string.find(part, text, 1, true)
end

local function matches(id, found)
    local _, _, kind, _, _, created_at = cmsgpack.unpack(found.head)
    local more = found.more and cmsgpack.unpack(found.more) or {}
    local tenant = more[2]
    return (not ask.kind or ask.kind == kind)
        and (not ask.state or ask.state == (found.state or 'pending'))
        and (not ask.tenant or ask.tenant == tenant)
        and (not ask.schedule_id or ask.schedule_id == more[4])
        and (not ask.since or ask.since <= created_at)
        and (not ask.until_ or created_at < ask.until_)
        and (not ask.error or holds_text(ask.error, found.error))
        and (not ask.text or holds_text(ask.text, id) or holds_text(ask.text, kind) or holds_text(ask.text, found.key)
            or holds_text(ask.text, tenant) or holds_text(ask.text, found.error))
end

-- the next jobs of every queue; beyond the last of a queue that has more it is not known what follows
local line = ask.state == 'dead' and 'dead|' or 'jobs|'
local after = ask.after and '(' .. int(ask.after) or '-inf'
local ahead = {}
local horizon = math.huge
for _, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    local page = call('ZRANGE', P .. line .. queue, after, '+inf', 'BYSCORE', 'LIMIT', 0, ask.most, 'WITHSCORES')
    for at = 1, #page, 2 do
        ahead[#ahead + 1] = {tonumber(page[at + 1]), page[at]}
    end
    if #page == 2 * ask.most then
        horizon = math.min(horizon, tonumber(page[#page]))
    end
end
table.sort(ahead, function(one, other) return one[1] < other[1] end)

local found = {}
local last = ask.after
local looked = 0
for _, pair in ipairs(ahead) do
    if #found >= ask.limit or looked >= ask.most or pair[1] > horizon then
        break
    end
    local job = fields_of(P .. 'job|' .. pair[2])
    if job.head and matches(pair[2], job) then
        found[#found + 1] = whole_job(pair[2], job)
    end
    last = pair[1]
    looked = looked + 1
end
local more = looked < #ahead or horizon < math.huge
return array(3) .. number(last) .. (more and '\195' or '\194') .. array(#found) .. table.concat(found)
