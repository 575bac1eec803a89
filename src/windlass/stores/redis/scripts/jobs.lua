-- parts: asked base fields whole matching merging
-- A page of the jobs that match, in the order of their enqueue, past ask.after. At most ask.most are looked at, and no more
-- once what is read is as large as ask.bytes, so that others are served meanwhile. The reply is {the last that was looked
-- at, whether there are more, jobs}.
local lines = {}
for at, queue in ipairs(ask.queues or call('SMEMBERS', P .. 'queues')) do
    lines[at] = P .. (ask.state == 'dead' and 'dead|' or 'jobs|') .. queue
end
local next_job, has_more = merged(lines, ask.after and '(' .. int(ask.after) or '-inf', '+inf')

local found = {}
local last = ask.after
local looked, size = 0, 0
while has_more() and #found < ask.limit and looked < ask.most and size + carried < ask.bytes do
    local id
    last, id = next_job()
    if matches(id) then
        found[#found + 1] = whole_job(id, fields_of(P .. 'job|' .. id))
        size = size + #found[#found]
    end
    looked = looked + 1
end
return array(3) .. number(last) .. (has_more() and '\195' or '\194') .. array(#found) .. table.concat(found)
