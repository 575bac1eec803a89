-- The answers to settlements: "done" and the like for each, or {id, why} for one whose job is damaged; of such a one
-- nothing was written.
local function damaged_in(settlement, why)
    return {settlement[1], why}
end

-- settle each by `step`; return the reply, and whether a repetition is to be answered the same
local function settle_each(step)
    local results = {}
    each(ask.settlements, results, step, damaged_in)
    local all_done, none_done = true, true
    for _, result in ipairs(results) do
        all_done = all_done and result == 'done'
        -- what was lost stays so, and what is damaged is judged anew: they need no receipt
        none_done = none_done and (result == 'lost' or type(result) == 'table' and not result[3])
    end
    finish()
    return cmsgpack.pack(all_done or results), not none_done
end
