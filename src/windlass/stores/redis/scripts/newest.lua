-- parts: asked base fields whole matching
-- A page of the jobs that match, the newest first, those before ask.before. At most ask.most are looked at, so that others
-- are served meanwhile. The reply is {the last that was looked at, whether there are more, how many were
-- looked at, jobs}.
local FEW = 10000
local AHEAD_AT_LEAST = 50
local SEQ_FROM = 13
local ID_FROM = 21
local queues = ask.queues or call('SMEMBERS', P .. 'queues')

-- the lines that have the jobs of the wanted state, in another order than that of their enqueue
local function lines_of(queue)
    if ask.state == 'pending' then
        local lines = {}
        for at, kind in ipairs(ask.kind and {ask.kind} or call('SMEMBERS', P .. 'kinds|' .. queue)) do
            lines[at] = P .. 'ready|' .. queue .. '|' .. kind
        end
        return lines
    elseif ask.state == 'scheduled' then
        return {P .. 'due|' .. queue}
    elseif ask.state == 'running' then
        return {P .. 'leased|' .. queue}
    end
    return {P .. 'ended|' .. queue .. '|' .. ask.state}
end

-- {number, id} of every job of a line
local function members_of(queue, line)
    local pairs_ = {}
    for at, member in ipairs(call('ZRANGE', line, 0, -1)) do
        if ask.state == 'pending' then
            pairs_[at] = {struct.unpack('>I8', member, SEQ_FROM), string.sub(member, ID_FROM)}
        else
            pairs_[at] = {tonumber(call('ZSCORE', P .. 'jobs|' .. queue, member) or 0), member}
        end
    end
    return pairs_
end

-- All jobs of the wanted state, where they are few: they may be anywhere among the others. Dead ones have a line in the
-- right order, and are found there.
local function few()
    if not ask.state or ask.state == 'dead' then
        return nil
    end
    local lines, jobs = {}, 0
    for _, queue in ipairs(queues) do
        for _, line in ipairs(lines_of(queue)) do
            lines[#lines + 1] = {queue, line}
            jobs = jobs + call('ZCARD', line)
        end
    end
    if jobs > FEW then
        return nil
    end
    local found = {}
    for _, line in ipairs(lines) do
        for _, pair in ipairs(members_of(line[1], line[2])) do
            if not ask.before or pair[1] < ask.before then
                found[#found + 1] = pair
            end
        end
    end
    return found
end

-- The newest jobs of every queue, and the number beyond which it is not known what follows: the last of a queue that has
-- more.
local function ahead_of_all()
    local line = ask.state == 'dead' and 'dead|' or 'jobs|'
    local before = ask.before and '(' .. int(ask.before) or '+inf'
    local each = math.min(ask.most, math.max(AHEAD_AT_LEAST, math.floor(ask.most / math.max(#queues, 1))))
    local found = {}
    local horizon = -math.huge
    for _, queue in ipairs(queues) do
        local page = call('ZRANGE', P .. line .. queue, before, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, each, 'WITHSCORES')
        for at = 1, #page, 2 do
            found[#found + 1] = {tonumber(page[at + 1]), page[at]}
        end
        if #page == 2 * each then
            horizon = math.max(horizon, tonumber(page[#page]))
        end
    end
    return found, horizon
end

local ahead, horizon = few(), -math.huge
if not ahead then
    ahead, horizon = ahead_of_all()
end
table.sort(ahead, function(one, other) return one[1] > other[1] end)

local found = {}
local last = ask.before
local looked = 0
for _, pair in ipairs(ahead) do
    if #found >= ask.limit or looked >= ask.most or pair[1] < horizon then
        break
    end
    if matches(pair[2]) then
        found[#found + 1] = whole_job(pair[2], fields_of(P .. 'job|' .. pair[2]))
    end
    last = pair[1]
    looked = looked + 1
end
local more = looked < #ahead or horizon > -math.huge
return array(4)
    .. number(last) .. (more and '\195' or '\194') .. number(looked) .. array(#found) .. table.concat(found)
