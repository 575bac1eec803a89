-- once: asked base lines news places jobs steps leaving holders holds kv numbers damage ids enqueuing keyed gate
-- Put jobs in line, all or none. The reply is that of enqueue.lua, or for a conflict of keys {false, key, holder, why}.
if AWAY then
    return AWAY, false
end
local conflict = conflict_of(ask.jobs, {}, nil, nil)
if conflict then
    return cmsgpack.pack({false, unpack(conflict)}), false
end
local ids, old = put(ask.jobs, keyed)
finish()
return created_reply(ids, old)
