-- once: asked base lines news places jobs standing
-- Delete finished records past their retention, the oldest first. ask.keep has by queue ('' for all others) the spans
-- by state, none where they stay for ever; ask.most bounds the records per queue and end. The reply is how many.
local done = 0

local function remove(queue, ended, ids)
    for _, id in ipairs(ids) do
        local job = read_job(id)
        -- a server that is allowed to forget may have forgotten it
        if job then
            remove_job(job)
        else
            part(ended, id)
            part(P .. 'jobs|' .. queue, id)
            part(P .. 'dead|' .. queue, id)
            call('DEL', P .. 'history|' .. id, P .. 'log|' .. id)
        end
    end
    done = done + #ids
    flush()
end

for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    local keep = ask.keep[queue] or ask.keep['']
    for _, state in ipairs({'succeeded', 'dead', 'cancelled'}) do
        local ended = P .. 'ended|' .. queue .. '|' .. state
        local over = ask.most and math.min(call('ZCARD', ended) - ask.most, ask.limit - done) or 0
        if over > 0 then
            remove(queue, ended, call('ZRANGE', ended, 0, over - 1))
        end
        if done < ask.limit and keep[state] then
            local upto = int(now - keep[state])
            remove(queue, ended, call('ZRANGE', ended, '-inf', upto, 'BYSCORE', 'LIMIT', 0, ask.limit - done))
        end
    end
end
for _, id in ipairs(call('ZRANGE', P .. 'servers_seen', '-inf', int(now - ask.servers_kept), 'BYSCORE')) do
    call('HDEL', P .. 'servers', id)
    call('HDEL', P .. 'servers_started', id)
    call('ZREM', P .. 'servers_seen', id)
end
for _, name in ipairs(call('ZRANGE', P .. 'unpacked_at', '-inf', int(now - ask.parcels_kept), 'BYSCORE')) do
    call('HDEL', P .. 'unpacked', name)
    call('ZREM', P .. 'unpacked_at', name)
end
return cmsgpack.pack(done), done > 0
