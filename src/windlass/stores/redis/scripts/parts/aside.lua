-- Damaged jobs are set aside: they become dead with a reason that names the field, and their stored bytes stay. A job that
-- is no hash keeps its key too, and only stands among the dead ones.
local DEAD_REASON = 'DamagedRecord: %s. No worker can run this job. Its stored bytes are unchanged: '
    .. 'repair them and retry the job, or delete it'

local function integer_damage(name, value, least, most)
    if type(value) ~= 'number' then
        return name .. ' is not an integer'
    elseif not (value >= least and value <= most) then
        return name .. ' is out of range'
    end
    return value % 1 ~= 0 and name .. ' is not an integer'
end

local function text_damage(name, value)
    return value ~= nil and type(value) ~= 'string' and name .. ' is not a text'
end

-- {whether it can be unpacked, how many values it has, values} of something packed
local function opened(text)
    local function gathered(done, ...)
        return {done, select('#', ...), {...}}
    end
    return gathered(pcall(cmsgpack.unpack, text))
end

local function head_damage(head, queue, kind)
    if not head then
        return 'head is missing'
    end
    local found = opened(head)
    local values = found[3]
    if not found[1] then
        return 'head cannot be unpacked'
    elseif found[2] ~= 6 then
        return 'head has ' .. found[2] .. ' values instead of 6'
    elseif type(values[2]) ~= 'string' then
        return 'queue is not a text'
    elseif values[2] ~= queue then
        return 'queue is another one than that of the line where the job stands'
    elseif type(values[3]) ~= 'string' then
        return 'kind is not a text'
    elseif kind and values[3] ~= kind then
        return 'kind is another one than that of the line where the job stands'
    end
    return integer_damage('seq', values[1], -MOST, MOST)
        or integer_damage('priority', values[4], -MOST, MOST)
        or integer_damage('max_attempts', values[5], -MOST, MOST)
        or integer_damage('created_at', values[6], EARLIEST, LATEST)
end

local function body_damage(body)
    if not body then
        return 'body is missing'
    end
    local first, codec = string.byte(body, 1, 2)
    if first ~= 0x92 then
        return 'body cannot be unpacked'
    elseif codec == 0xa0 then
        return 'codec is empty'
    elseif not codec or codec < 0xa0 or codec > 0xbf and codec ~= 0xd9 then
        return 'codec is not a text'
    end
    local done, whole = pcall(is_whole, body)
    return not (done and whole) and 'payload is not bytes, or not as many as it says'
end

local function claim_damage(claim)
    local found = claim and opened(claim)
    if not found then
        return nil
    elseif not found[1] then
        return 'claim cannot be unpacked'
    end
    return text_damage('token', found[3][1]) or integer_damage('attempt', found[3][2], 0, MOST) or integer_damage('delivery', found[3][3], 0, MOST)
end

local function more_damage(more)
    local found = more and opened(more)
    if not found then
        return nil
    end
    local values = found[3][1]
    if not found[1] or found[2] ~= 1 or string.byte(more) ~= 0x95 or type(values) ~= 'table' then
        return 'more cannot be unpacked'
    elseif type(values[1]) ~= 'table' then
        return 'headers is not an object of texts'
    end
    for name, value in pairs(values[1]) do
        if type(name) ~= 'string' or type(value) ~= 'string' then
            return 'headers is not an object of texts'
        end
    end
    return text_damage('tenant', values[2]) or text_damage('parent_id', values[3])
        or text_damage('schedule_id', values[4]) or text_damage('limit_key', values[5])
end

local function hold_damage(hold)
    local found = hold and opened(hold)
    if not found then
        return nil
    elseif not found[1] or type(found[3][1]) ~= 'table' or type(found[3][1][1]) ~= 'string' then
        return 'hold cannot be unpacked'
    end
    return nil
end

local function list_damage(name, id)
    local done, err = pcall(call, 'LRANGE', P .. name .. '|' .. id, 0, 0)
    return not done and damage(err) and name .. ' is not a list'
end

-- what is damaged of a job that stands in a line of a queue, and of a kind and a state where these are known
local function damage_of(id, found, queue, kind, state)
    local all = {}
    local function add(why)
        all[#all + 1] = why or nil
    end
    add(head_damage(found.head, queue, kind))
    add(body_damage(found.body))
    add(claim_damage(found.claim))
    add(more_damage(found.more))
    add(hold_damage(found.hold))
    add(state and found.state ~= state and 'state is not that of the line where the job stands')
    add(found.run_at and integer_damage('run_at', tonumber(found.run_at), EARLIEST, LATEST))
    add(list_damage('history', id))
    add(list_damage('log', id))
    return #all > 0 and table.concat(all, '; ') or nil
end

-- the kind that a damaged job is counted by, where its head tells one
local function stored_kind(found)
    local head = found.head and opened(found.head)
    local kind = head and head[1] and head[3][3]
    return type(kind) == 'string' and #kind <= 200 and not string.find(kind, '[^%w_.:/@#-]') and kind or nil
end

-- free the key of a job that is set aside, as at any end
local function free_key(id, found)
    local hold = opened(found.hold)
    local wish = hold[3][1]
    if hold[1] and type(wish) == 'table' and type(wish[1]) == 'string' and wish[3] ~= 'time'
        and holds_it({id = id, hold = wish, key = found.key}) then
        call('DEL', P .. 'hold|' .. wish[1])
    end
end

-- `dead` overwrites these, so what a damaged job had there is kept beside it
local OVERWRITTEN = {'state', 'error', 'finished_at'}
local WAITS_OR_RUNS = {pending = true, scheduled = true, running = true}

-- what is written to the hash of a job that is set aside, beside its end
local function fields_of_dead(found, state, why)
    local fields = {'error', string.format(DEAD_REASON, why)}
    for _, field in ipairs(OVERWRITTEN) do
        if found[field] and not WAITS_OR_RUNS[found[field]] then
            fields[#fields + 1] = field .. '_before'
            fields[#fields + 1] = found[field]
        end
    end
    local claim = found.claim and opened(found.claim)
    if state == 'running' and claim and claim[1] then
        -- who had it has lost it: when that settles, it is no repetition
        fields[#fields + 1] = 'claim'
        fields[#fields + 1] = cmsgpack.pack(nil, claim[3][2], claim[3][3], claim[3][4], claim[3][5])
    end
    return fields
end

-- Set aside a job of a queue, and of a kind and a state where these are known, for what is said of an error, or `why`; return
-- what is damaged. A running job leaves its line here, any other is taken out of it by the caller.
local function set_aside(id, queue, kind, state, err, why)
    local job = {id = id, queue = queue, kind = kind, state = state}
    local hash = job_key(id)
    local is_hash, found = pcall(fields_of, hash)
    local fields
    if is_hash then
        why = why or damage_of(id, found, queue, kind, state) or err
        fields = fields_of_dead(found, state, why)
        if found.hold then
            free_key(id, found)
        end
        job.hash = hash
        job.kind = kind or stored_kind(found)
    else
        damage(found)
        why = 'job|' .. id .. ' is not a hash'
    end
    job.kind = job.kind or ''
    job.seq = call('ZSCORE', P .. 'jobs|' .. queue, id)
    if not job.seq then
        job.seq = '0'
        call('ZADD', P .. 'jobs|' .. queue, job.seq, id)
    end
    if state == 'running' then
        stops_running(job)
    end
    ends(job, 'dead', true, fields)
    tell('flags')
    return why
end
