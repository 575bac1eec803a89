-- parts: asked base lines news places jobs leaving holders holds kv schedules damage each
-- Forget what another store has now: jobs by their ids, those that wait, keys by the names of their holders, values and
-- schedules. With ask.move only while the jobs of this store go by that move. The reply is whether they do, or
-- {id, why} of a job that is damaged.
local moved = call('GET', P .. 'moved')
if ask.move and not (moved and (cmsgpack.unpack(moved))[2] == ask.move) then
    return cmsgpack.pack(false), false
end
local kept = {}
each(ask.jobs, kept, function(id)
    local job = read_job(id)
    if job and is_waiting(job) then
        if job.hold and holds_it(job) then
            forget_holder(job.hold[1])
        end
        remove_job(job)
    end
end, as_damaged)
for _, name in ipairs(ask.keys) do
    forget_holder(name)
end
write_kv(ask.kv)
for _, id in ipairs(ask.schedules) do
    if drop_schedule(id) then
        tell('schedules')
    end
end
finish()
local _, first = next(kept)
return cmsgpack.pack(first or true)
