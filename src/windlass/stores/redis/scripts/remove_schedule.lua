-- once: asked base lines news schedules gate
-- Remove a schedule; the reply tells whether it was there.
if AWAY then
    return AWAY, false
end
if not drop_schedule(ask.id) then
    return cmsgpack.pack(false)
end
tell('schedules')
finish()
return cmsgpack.pack(true)
