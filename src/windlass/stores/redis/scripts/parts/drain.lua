-- Lines that jobs leave, past those that have to stay, among them those that are damaged: of these {id, why} is told.
local PAGE = 1000
local damaged = {}

local function note_damage(id, why)
    damaged[#damaged + 1] = {id, why}
    return false
end

-- Do a step for the ids of a line, which page(passed, most) reads, until `limit` of them have left it; it returns whether
-- the job leaves. Return how many have left.
local function drain(limit, page, step)
    local left, passed = 0, 0
    while left < limit do
        local wanted = math.min(limit - left, PAGE)
        local ids = page(passed, wanted)
        if #ids > 0 then
            local leaves = {}
            each(ids, leaves, step, note_damage)
            -- the next page is read from what is left
            flush()
            for at = 1, #ids do
                if leaves[at] then
                    left = left + 1
                else
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
