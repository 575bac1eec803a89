-- What a script has changed: whom to tell, and what to count. A move ends with finish(); the reply begins with the topics.
local CHANNEL = string.match(P, '^{([^|}]*)') .. '|news'
local topics = {}
local told = {}
local counts = {}

local function tell(topic)
    topics[topic] = true
end

local function count(what, queue, kind)
    local of_queue = counts[queue]
    if not of_queue then
        of_queue = {}
        counts[queue] = of_queue
    end
    local of_kind = of_queue[kind]
    if not of_kind then
        of_kind = {}
        of_queue[kind] = of_kind
    end
    of_kind[what] = (of_kind[what] or 0) + 1
end

local MINUTE = 60000000
local MINUTES_KEPT = 8 * 24 * 3600

local function finish()
    flush()
    local minute = now - now % MINUTE
    local key = P .. 'minute|' .. int(minute)
    for queue, of_queue in pairs(counts) do
        for kind, of_kind in pairs(of_queue) do
            for what, times in pairs(of_kind) do
                if is_first(P .. 'totals|' .. queue, what, times) then
                    -- the first of its kind: perhaps nobody knows the queue
                    call('SADD', P .. 'queues', queue)
                end
                if is_first(key, queue .. '|' .. kind .. '|' .. what, times) then
                    call('EXPIRE', key, MINUTES_KEPT)
                end
            end
        end
    end
    for topic in pairs(topics) do
        told[#told + 1] = topic
    end
    if #told > 0 then
        call('PUBLISH', CHANNEL, (ask.me or '') .. ' ' .. table.concat(told, ' '))
    end
end

-- The caller tells its own process, after it has read the reply: so its news never comes before what it is about.
local function telling(move)
    local reply = move()
    if type(reply) == 'table' then
        -- a refusal
        return reply
    end
    local text = table.concat(told, ' ')
    return struct.pack('>I4', #text) .. text .. reply
end
