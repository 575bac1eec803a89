-- once: asked base lines news places jobs leaving damage each drain
-- Delete finished records past their retention, the oldest first. ask.keep has by queue ('' for all others) the spans
-- by state, none where they stay for ever; ask.most bounds the records per queue and end. The reply is how many.
local done = 0

local function remove(queue, ended, limit, page)
    local function forget(id)
        part(ended, id)
        part(P .. 'jobs|' .. queue, id)
        part(P .. 'dead|' .. queue, id)
        call('DEL', job_key(id), P .. 'history|' .. id, P .. 'log|' .. id)
        return true
    end
    done = done + drain(limit, page, function(id)
        local job = read_job(id)
        -- a server that is allowed to forget may have forgotten it
        if not job then
            return forget(id)
        end
        remove_job(job)
        return true
    end, forget)
end

for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    local keep = ask.keep[queue] or ask.keep['']
    for _, state in ipairs({'succeeded', 'dead', 'cancelled'}) do
        local ended = P .. 'ended|' .. queue .. '|' .. state
        if ask.most then
            remove(queue, ended, ask.limit - done, function(passed, most)
                local over = math.min(passed + most, call('ZCARD', ended) - ask.most)
                return over > passed and call('ZRANGE', ended, passed, over - 1) or {}
            end)
        end
        if done < ask.limit and keep[state] then
            local upto = int(now - keep[state])
            remove(queue, ended, ask.limit - done, function(passed, most)
                return call('ZRANGE', ended, '-inf', upto, 'BYSCORE', 'LIMIT', passed, most)
            end)
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
