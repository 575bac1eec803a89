-- Lines that jobs leave, past those that have to stay. What is damaged leaves them too: it is set aside.
local PAGE = 1000

-- Do a step for the ids of a line, which page(passed, most) reads, until `limit` of them have left it; it returns whether
-- the job leaves, and so does `refuse` of a damaged one, or UNCOUNTED for one that leaves beyond the limit, up to `most` of
-- these. Return how many have left.
local UNCOUNTED = 'uncounted'

local function drain(limit, page, step, refuse, most)
    local left, passed, uncounted = 0, 0, 0
    most = most or math.huge
    while left < limit and uncounted < most do
        local wanted = math.min(limit - left, PAGE, most - uncounted)
        local ids = page(passed, wanted)
        if #ids > 0 then
            local leaves = {}
            each(ids, leaves, step, refuse)
            -- the next page is read from what is left
            flush()
            for at = 1, #ids do
                if leaves[at] == true then
                    left = left + 1
                elseif leaves[at] == UNCOUNTED then
                    uncounted = uncounted + 1
                elseif not leaves[at] then
                    passed = passed + 1
                end
            end
        end
        if #ids < wanted then
            break
        end
    end
    return left
end
