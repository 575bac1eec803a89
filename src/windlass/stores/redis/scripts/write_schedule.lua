-- once: asked base lines news schedules gate
-- Write a schedule if its revision is still ask.expected (none: if there is none of this id); the reply is its new
-- revision, or nil when that did not hold.
if AWAY then
    return AWAY, false
end
local found = read_schedule(ask.id)
if (found and found.revision) ~= ask.expected then
    if found or ask.expected then
        return NIL
    end
end
local revision = change_schedule(ask.id, ask.fields)
call('SADD', P .. 'schedules', ask.id)
tell('schedules')
finish()
return number(revision)
