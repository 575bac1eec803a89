-- Lines that are looked at before the first write of a job: lines are changed at the end of a script, so a job would be there
-- by half where one is of another type.
local sound = {}
local broken

-- Whether the value of a line, or of another key by its command, is of its type. Where it is not, the caller writes nothing
-- of the job, and raise_if_broken() ends the script in this error once all else is written: what it returns is not read.
local function is_sound(key, command, ...)
    if sound[key] == nil then
        local found = redis.pcall(command or 'ZCARD', key, ...)
        sound[key] = type(found) ~= 'table'
        broken = broken or not sound[key] and found
    end
    return sound[key]
end

-- whether each line is of its type that a job comes to, or leaves, when it starts to wait
local waiting_of = {}
local function can_wait(job)
    local queue = job.queue
    local ready = ready_key(queue, job.kind)
    if waiting_of[ready] == nil then
        waiting_of[ready] = is_sound(ready) and is_sound(P .. 'leased|' .. queue) and is_sound(P .. 'due|' .. queue)
            and is_sound(P .. 'kinds|' .. queue, 'SISMEMBER', job.kind)
    end
    return waiting_of[ready]
end

-- the same of a job that ends, or that has ended
local function can_end(job, state)
    local queue = job.queue
    return is_sound(P .. 'leased|' .. queue) and is_sound(P .. 'ended|' .. queue .. '|' .. state)
        and (state ~= 'dead' or is_sound(P .. 'dead|' .. queue))
end

local function raise_if_broken()
    if broken then
        -- as a table it keeps its code
        error({err = broken.err})
    end
end
