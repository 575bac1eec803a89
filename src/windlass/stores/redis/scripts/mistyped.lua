-- parts: asked base
-- The keys of the store and of its queues whose value is not of their type, each with what it is: for an error that names
-- no key.
local OF_STORE = {
    string = {'seq', 'moved', 'revision'},
    hash = {
        'meta', 'queue_numbers', 'kv', 'servers', 'servers_started', 'schedules_at', 'unpacked',
    },
    set = {'queues', 'paused', 'schedules'},
    zset = {'timed', 'kv_keys', 'schedules_due', 'servers_seen', 'unpacked_at'},
    list = {'audit'},
}
local OF_QUEUE = {
    hash = {'totals|%s', 'settings|%s'},
    set = {'kinds|%s'},
    zset = {
        'jobs|%s', 'due|%s', 'leased|%s', 'dead|%s', 'ended|%s|succeeded', 'ended|%s|dead', 'ended|%s|cancelled',
    },
}
local found = {}

local function look(key, wanted)
    local is = call('TYPE', P .. key).ok
    local is_wrong = is ~= 'none' and is ~= wanted
    if is_wrong then
        found[#found + 1] = key .. ' is a ' .. is .. ' instead of a ' .. wanted
    elseif is == 'string' and key ~= 'moved' and not string.find(call('GET', P .. key), '^%d+$') then
        found[#found + 1] = key .. ' is not a number'
    end
end

for wanted, keys in pairs(OF_STORE) do
    for _, key in ipairs(keys) do
        look(key, wanted)
    end
end
for _, queue in ipairs(call('TYPE', P .. 'queues').ok == 'set' and call('SMEMBERS', P .. 'queues') or {}) do
    for wanted, keys in pairs(OF_QUEUE) do
        for _, key in ipairs(keys) do
            look(string.format(key, queue), wanted)
        end
    end
    if call('TYPE', P .. 'kinds|' .. queue).ok == 'set' then
        for _, kind in ipairs(call('SMEMBERS', P .. 'kinds|' .. queue)) do
            look('ready|' .. queue .. '|' .. kind, 'zset')
        end
    end
end
table.sort(found)
return cmsgpack.pack(found)
