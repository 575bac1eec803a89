-- parts: asked base fields whole matching
-- A page of the jobs that match, in the order of their enqueue, past ask.after. At most ask.most are looked at, so that
-- others are served meanwhile. The reply is {the last that was looked at, whether there are more, jobs}.
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
    if matches(pair[2]) then
        found[#found + 1] = whole_job(pair[2], fields_of(P .. 'job|' .. pair[2]))
    end
    last = pair[1]
    looked = looked + 1
end
local more = looked < #ahead or horizon < math.huge
return array(3) .. number(last) .. (more and '\195' or '\194') .. array(#found) .. table.concat(found)
