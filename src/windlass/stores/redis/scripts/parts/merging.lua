-- The jobs of several lines together, in the order of their numbers: merged(keys, from, to, backwards) returns next_job(),
-- which returns a number and an id, and has_more(). A script looks at a small part of them, mostly from few of the lines. So
-- of each the first ones are read, and of one that was used up twice as many as before. The lines are a heap by the number
-- that each is at.
local READ_FIRST = 1000
local READ_AT_LEAST = 2

local function sift_down(heap, at)
    local line = heap[at]
    while true do
        local child = 2 * at
        if child < #heap and heap[child + 1].order < heap[child].order then
            child = child + 1
        end
        if child > #heap or line.order <= heap[child].order then
            break
        end
        heap[at] = heap[child]
        at = child
    end
    heap[at] = line
end

local function merged(keys, from, to, backwards)
    local sign = backwards and -1 or 1
    local ahead = math.max(READ_AT_LEAST, math.min(ask.most, math.floor(READ_FIRST / math.max(#keys, 1))))
    local heap = {}

    local function read(line, past, count)
        line.count = count
        if backwards then
            line.page = call('ZRANGE', line.key, past, to, 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES')
        else
            line.page = call('ZRANGE', line.key, past, to, 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES')
        end
        line.at = 1
    end

    -- let a line tell what it is at; return whether that is a job
    local function is_at_job(line)
        local number = line.page[line.at + 1]
        line.order = number and sign * tonumber(number)
        return number
    end

    local function step(line)
        line.at = line.at + 2
        -- of one that gave fewer than it was asked for all is read
        if line.at > #line.page and #line.page == 2 * line.count then
            read(line, '(' .. line.page[#line.page], math.min(2 * line.count, ask.most))
        end
        return is_at_job(line)
    end

    for _, key in ipairs(keys) do
        local line = {key = key}
        read(line, from, ahead)
        if is_at_job(line) then
            heap[#heap + 1] = line
        end
    end
    for at = math.floor(#heap / 2), 1, -1 do
        sift_down(heap, at)
    end

    local function next_job()
        local line = heap[1]
        local number, id = sign * line.order, line.page[line.at]
        if not step(line) then
            heap[1] = heap[#heap]
            heap[#heap] = nil
        end
        if heap[1] then
            sift_down(heap, 1)
        end
        return number, id
    end

    local function has_more()
        return #heap > 0
    end

    return next_job, has_more
end
