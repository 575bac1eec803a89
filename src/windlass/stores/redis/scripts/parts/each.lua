-- Many steps of one script, each of a job, of which one that meets a damaged job does not keep the others from being done.

-- Do what `go_on` does until it is through: it goes on from where it was once `refuse` has been told what is said of an
-- error and has stepped over its cause. The error is caught around all of it, which costs the sound ones nothing.
local function past_damage(go_on, refuse)
    local done, err
    repeat
        done, err = pcall(go_on)
        if not done then
            refuse(damage(err))
        end
    until done
end

-- Do a step for each of `many`, and let `results` have what it returns; of one that failed it has what `refuse` makes of it
-- and of what is said of the error.
local function each(many, results, step, refuse)
    local at = 1
    past_damage(function()
        while at <= #many do
            results[at] = step(many[at])
            at = at + 1
        end
    end, function(why)
        results[at] = refuse(many[at], why)
        at = at + 1
    end)
end

-- what is told of a damaged job to whoever asked for it by its id
local function as_damaged(id, why)
    return {id, why}
end
