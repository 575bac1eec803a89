-- parts: asked base fields whole body damage each framed matching page
-- A page of the dead jobs, the last to die first, those before {ask.at, ask.seq}. The reply is {whether there may be more,
-- jobs, {id, time of death, number} of each that was looked at}.
local READ = 10000
local most = math.max(1, math.min(ask.limit, ask.most, math.floor(READ / math.max(#queues, 1))))
local deaths, more = {}, false

local function add(queue, id, at)
    deaths[#deaths + 1] = {id = id, at = at, queue = queue}
    return deaths[#deaths]
end

-- the number of a job: it is read only where two died at the same time, and for the jobs of the page
local function seq_of(death)
    if not death.seq then
        death.seq = tonumber(call('ZSCORE', P .. 'dead|' .. death.queue, death.id) or 0)
    end
    return death.seq
end

-- The sorted set has jobs of one time in the order of their ids, and they are given by their numbers: all of them are read.
local function add_those_at(queue, line, at, before)
    for _, id in ipairs(call('ZRANGE', line, at, at, 'BYSCORE')) do
        local death = add(queue, id, tonumber(at))
        if before and seq_of(death) >= before then
            deaths[#deaths] = nil
        end
    end
end

for _, queue in ipairs(queues) do
    local line = P .. 'ended|' .. queue .. '|dead'
    local from = '+inf'
    if ask.at then
        add_those_at(queue, line, int(ask.at), ask.seq)
        from = '(' .. int(ask.at)
    end
    local page = call('ZRANGE', line, from, '(-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
    local is_cut = #page == 2 * most
    local last = is_cut and page[#page]
    for at = 1, #page, 2 do
        if page[at + 1] ~= last then
            add(queue, page[at], tonumber(page[at + 1]))
        end
    end
    if is_cut then
        add_those_at(queue, line, last)
        more = true
    end
end
table.sort(deaths, function(one, other)
    if one.at ~= other.at then
        return one.at > other.at
    end
    return seq_of(one) > seq_of(other)
end)

ask.limit = most
ask.most = most
local at, places = 0, {}
local function next_job()
    at = at + 1
    local death = deaths[at]
    places[at] = cmsgpack.pack({death.id, math.floor(death.at), seq_of(death)})
    return at, death.id
end
local _, _, found = page_of(0, next_job, function() return at < #deaths end)
return array(3) .. ((more or at < #deaths) and '\195' or '\194')
    .. array(#found) .. table.concat(found) .. array(#places) .. table.concat(places)
