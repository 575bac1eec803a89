-- parts: asked base fields whole body damage each framed matching merging page
-- A page of the jobs that match, the newest first, those before ask.before. The reply is {the last that was looked at,
-- whether there are more, how many were looked at, jobs}.
local FEW = 10000
local SEQ_FROM = 13
local ID_FROM = 21

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

-- let those few be given one by one, as the jobs of lines are
local function one_by_one(ahead)
    table.sort(ahead, function(one, other) return one[1] > other[1] end)
    local at = 0
    local function next_job()
        at = at + 1
        return ahead[at][1], ahead[at][2]
    end
    return next_job, function() return at < #ahead end
end

local next_job, has_more
local ahead = few()
if ahead then
    next_job, has_more = one_by_one(ahead)
else
    next_job, has_more = merged(lines_in_order(), ask.before and '(' .. int(ask.before) or '+inf', '-inf', true)
end
local last, looked, found = page_of(ask.before, next_job, has_more)
return array(4)
    .. number(last) .. (has_more() and '\195' or '\194') .. number(looked) .. array(#found) .. table.concat(found)
