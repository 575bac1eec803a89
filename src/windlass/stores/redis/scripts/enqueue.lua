-- once: asked base lines news places numbers enqueuing gate
-- Put jobs in line that ask for no key and bring no values along: {true}, or {true, {id, created} for each} where some are
-- not new.
if AWAY then
    return AWAY, false
end
local ids, old = put(ask.jobs)
finish()
return created_reply(ids, old)
