-- Changes of sorted sets, kept back so that those of many jobs are made together: by flush(), before anybody reads them.
local AT_ONCE = 1000
local added = {}
local removed = {}

local function keep_back(changes, key, value, member)
    local line = changes[key]
    if not line then
        line = {n = 0}
        changes[key] = line
    end
    if value then
        line.n = line.n + 1
        line[line.n] = value
    end
    line.n = line.n + 1
    line[line.n] = member
end

local function join(key, score, member)
    keep_back(added, key, score, member)
end

local function part(key, member)
    keep_back(removed, key, nil, member)
end

local function change(command, changes)
    for key, line in pairs(changes) do
        for from = 1, line.n, AT_ONCE do
            call(command, key, unpack(line, from, math.min(from + AT_ONCE - 1, line.n)))
        end
        changes[key] = nil
    end
end

local function flush()
    change('ZREM', removed)
    change('ZADD', added)
end
