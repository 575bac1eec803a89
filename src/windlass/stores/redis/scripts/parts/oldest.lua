-- the earliest time in a line, which is ordered by priority first: the first job of each priority is looked at
local function oldest(line)
    local earliest = nil
    local from = '-'
    while true do
        local member = call('ZRANGE', line, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
        if not member then
            return earliest
        end
        if #member < 12 then
            -- it names no job, and goes with the next claim
            from = '(' .. member
        else
            local priority, run_at = struct.unpack('>I4I8', member)
            earliest = math.min(earliest or run_at, run_at, LATEST)
            from = '[' .. struct.pack('>I4', priority + 1)
        end
    end
end
