-- parts: asked base
-- Every server: {record, when it was first and last seen}.
local found = {}
local seen = call('ZRANGE', P .. 'servers_seen', 0, -1, 'WITHSCORES')
for at = 1, #seen, 2 do
    local started = call('HGET', P .. 'servers_started', seen[at])
    local record = call('HGET', P .. 'servers', seen[at])
    found[#found + 1] = array(3) .. cmsgpack.pack(record) .. number(started) .. number(seen[at + 1])
end
return array(#found) .. table.concat(found)
