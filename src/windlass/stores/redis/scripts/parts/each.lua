-- Many steps of one script, each of a job, of which one that meets a damaged job does not keep the others from being done.

-- Do a step for each of `many`, and let `results` have what it returns; of one that failed it has what `refuse` makes of it
-- and of what is said of the error. The error is caught around all of them, which costs none of them anything.
local function each(many, results, step, refuse)
    local at = 1
    local function go_on()
        while at <= #many do
            results[at] = step(many[at])
            at = at + 1
        end
    end
    while true do
        local done, err = pcall(go_on)
        if done then
            return
        end
        results[at] = refuse(many[at], damage(err))
        at = at + 1
    end
end
