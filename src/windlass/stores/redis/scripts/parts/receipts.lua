-- What was answered to a request, for a caller whose reply was lost and who asks again within ask.kept seconds.
local function earlier_reply()
    local key = P .. 'receipt|' .. (ask.request or '')
    local reply = ask.again and call('GET', key)
    if reply then
        -- a write, so that whoever waits for replicas waits until they have the first one too
        call('EXPIRE', key, ask.kept)
    end
    return reply or nil
end

local function keep_reply(reply)
    if ask.request then
        call('SET', P .. 'receipt|' .. ask.request, reply, 'EX', ask.kept)
    end
    return reply
end

-- answer as the first time, if there was one; a move that also returns false has refused, and is judged anew
local function once(move)
    local before = earlier_reply()
    if before then
        return before
    end
    local reply, done = move()
    return done == false and reply or keep_reply(reply)
end
