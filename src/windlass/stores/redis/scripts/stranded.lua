-- parts: asked base
-- Count the leases that ran out, up to ask.most; none while a server was seen within ask.dead_after.
local found = 0
if call('ZCOUNT', P .. 'servers_seen', '(' .. int(now - ask.dead_after), '+inf') == 0 then
    for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
        found = found + call('ZCOUNT', P .. 'leased|' .. queue, '-inf', int(now))
    end
end
return cmsgpack.pack(math.min(found, ask.most))
