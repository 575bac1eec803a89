-- once: asked base lines news places steps numbers damage ids enqueuing gate
-- Put jobs in line that ask for no key and bring no values along: {true}, or {true, {id, created} for each} where some are
-- not new; or for an id that another job has {false, id, queue, kind, tenant}, or {false, id, why} where that is damaged.
if AWAY then
    return AWAY, false
end
local here, conflict = ids_here(ask.jobs)
if conflict then
    return cmsgpack.pack({false, unpack(conflict)}), false
end
local ids, old = put(ask.jobs, nil, here)
finish()
return created_reply(ids, old)
