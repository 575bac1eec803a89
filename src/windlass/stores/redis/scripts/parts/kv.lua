-- The caller's own values: pairs of a key and a value, or false to delete.
local function write_kv(pairs_)
    for _, pair in ipairs(pairs_ or {}) do
        if pair[2] then
            call('HSET', P .. 'kv', pair[1], pair[2])
            call('ZADD', P .. 'kv_keys', 0, pair[1])
        else
            call('HDEL', P .. 'kv', pair[1])
            call('ZREM', P .. 'kv_keys', pair[1])
        end
    end
end

-- raise where these values cannot be written
local function check_kv()
    call('HGET', P .. 'kv', '')
    call('ZCARD', P .. 'kv_keys')
end
